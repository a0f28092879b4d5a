"""PISA through the binding in pyterrier-pisa, below PyTerrier: without data frames and Java.

The time of a query is taken inside one call of the binding, from passing its terms until the binding asks for the next
query, so that the setup of a call is excluded. The remaining overhead of Python is measured by queries without terms, and
by creating as many strings as there are hits. The terms are those of the suite: no tokenizer, no stemmer, no stop list.
"""

import importlib.machinery
import importlib.metadata
import importlib.util
import os
import time
from pathlib import Path

import numpy
from protocol import median_us, serve

ENCODING = "block_simdbp"
ALGORITHMS = {
    "or": ["block_max_maxscore", "maxscore", "block_max_wand", "wand", "ranked_or"],
    "and": ["ranked_and", "block_max_ranked_and"],
}
# The parameters of BM25, and the postings per block of bounds: the defaults of the binding.
K1, B, BLOCK = 0.9, 0.4, 64
OVERHEAD_REPETITIONS = 2001


def binding():
    """Loads only the extension module, because importing its package would import PyTerrier."""
    folder = Path(importlib.util.find_spec("pyterrier_pisa").submodule_search_locations[0])
    path = str(next(folder.glob("_pisathon*.so")))
    loader = importlib.machinery.ExtensionFileLoader("_pisathon", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("_pisathon", path, loader=loader))
    loader.exec_module(module)
    return module


class OneQuery:
    """A sequence of one query that records when it is taken and when the next one is requested."""

    def __init__(self, terms):
        self.query = (0, dict.fromkeys(terms, 1.0))

    def __len__(self):
        return 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.query is None:
            self.end = time.perf_counter_ns()
            raise StopIteration
        query, self.query = self.query, None
        self.start = time.perf_counter_ns()
        return query


class Pisa:
    def __init__(self, postings, index):
        self.pisa = binding()
        self.index = index
        self.context = self.pisa.RetrievalContext()
        self.buffers = {}
        index.mkdir(parents=True, exist_ok=True)
        for name in ["inv.docs", "inv.freqs", "inv.sizes", "fwd.terms", "fwd.documents"]:
            if not (index / name).exists():
                # Relative, so that the cache may be moved; an existing link is broken.
                (index / name).unlink(missing_ok=True)
                os.symlink(os.path.relpath(Path(postings) / name, index), index / name)
        for names, lexicon in [("fwd.terms", "fwd.termlex"), ("fwd.documents", "fwd.doclex")]:
            if not (index / lexicon).exists():
                self.pisa.build_binlex(str(index / names), str(index / lexicon))
        self.pisa.prepare_index(
            self.context, str(index), ENCODING, "bm25", "", block_size=BLOCK, bm25_k1=K1, bm25_b=B, stop_fname=""
        )

    def about(self):
        lists, bounds = next(self.index.glob(f"*.{ENCODING}")), next(self.index.glob(f"*.bmw.{BLOCK}"))
        return {
            "version": importlib.metadata.version("pyterrier-pisa"),
            "list_bytes": lists.stat().st_size,
            "bound_bytes": bounds.stat().st_size,
            "algorithms": ALGORITHMS,
        }

    def retrieve(self, terms, algorithm, k):
        """Runs one query; returns its time, and the ids and scores of its hits."""
        if k not in self.buffers:
            ids = numpy.full(k, None, dtype=object)
            self.buffers[k] = (ids, *(numpy.zeros(k, dtype=kind) for kind in ["int32", "int32", "float32"]))
        ids, queries, ranks, scores = self.buffers[k]
        query = OneQuery(terms)
        rows = self.pisa.retrieve(
            self.context, algorithm, query, k=k, threads=1, pretokenised=1, query_weighted=0,
            result_qidxs=queries, result_docnos=ids, result_ranks=ranks, result_scores=scores,
        )  # fmt: skip
        return (query.end - query.start) / 1e3, ids[:rows], scores[:rows]

    def ask(self, terms, request):
        us, ids, _ = self.retrieve(terms, request["algorithm"], request["k"])
        # The binding overwrites ids without releasing them.
        ids[:] = None
        return us, len(ids)

    def answer(self, terms, request):
        _, ids, scores = self.retrieve(terms, request["algorithm"], request["k"])
        hits = [[str(id), float(score)] for id, score in zip(ids, scores)]
        ids[:] = None
        return hits

    def overhead(self, k):
        empty = sorted(self.retrieve([], "ranked_or", k)[0] for _ in range(OVERHEAD_REPETITIONS))
        ids = (self.index / "fwd.documents").read_text(encoding="utf-8").split("\n", k)[:k]
        joined = "\n".join(ids)
        split_us = median_us(lambda: joined.split("\n"), OVERHEAD_REPETITIONS)
        return {"empty_us": empty[len(empty) // 2], "row_us": split_us / len(ids)}


if __name__ == "__main__":
    serve(Pisa)
