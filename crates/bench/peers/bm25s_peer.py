"""bm25s with its compiled (numba) backend. Its index, a matrix of scores, is made from the postings of the suite.

The time of a query is one call of `retrieve`, from terms to external ids or document numbers, on one thread. Only OR is
supported.
"""

import importlib.metadata
import os

for name in ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"]:
    os.environ[name] = "1"

import time

import bm25s
import numpy
from protocol import Postings, serve

K1, B = 0.9, 0.4


def scores_of(postings):
    """Returns Lucene's BM25 of every posting, list by list, as bm25s computes it from tokens."""
    documents, frequencies = postings.documents(), postings.frequencies().astype(numpy.float32)
    count, lists = len(postings.sizes), postings.lengths.astype(numpy.float64)
    idf = numpy.log(1 + (count - lists + 0.5) / (lists + 0.5)).astype(numpy.float32)
    norms = (K1 * (1 - B + B * postings.sizes / postings.sizes.mean())).astype(numpy.float32)
    scores = frequencies / (frequencies + norms[documents]) * numpy.repeat(idf, postings.lengths)
    pointers = numpy.concatenate([[0], numpy.cumsum(postings.lengths, dtype=numpy.int64)])
    return {"data": scores, "indices": documents.astype(numpy.int32), "indptr": pointers, "num_docs": count}


class Bm25s:
    def __init__(self, postings, index):
        postings = Postings(postings)
        self.ids = numpy.array(postings.ids(), dtype=object)
        self.bm25 = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numba")
        self.bm25.vocab_dict = {term: number for number, term in enumerate(postings.terms())}
        self.bm25.unique_token_ids_set = set(self.bm25.vocab_dict.values())
        self.bm25.scores, self.bm25.nonoccurrence_array = self.saved(postings, index), None

    @staticmethod
    def saved(postings, index):
        index.mkdir(parents=True, exist_ok=True)
        arrays = ["data", "indices", "indptr"]
        if not (index / "indptr.npy").exists():
            scores = scores_of(postings)
            for name in arrays:
                numpy.save(index / f"{name}.npy", scores[name])
        loaded = {name: numpy.load(index / f"{name}.npy") for name in arrays}
        return {**loaded, "num_docs": len(postings.sizes)}

    def about(self):
        scores = self.bm25.scores
        list_bytes = sum(scores[name].nbytes for name in ["data", "indices", "indptr"])
        version = importlib.metadata.version("bm25s")
        return {"version": version, "list_bytes": list_bytes, "algorithms": {"or": ["numba"], "and": []}}

    def retrieve(self, terms, k, ids=True):
        k = min(k, len(self.ids))
        corpus = self.ids if ids else None
        return self.bm25.retrieve([terms], corpus=corpus, k=k, show_progress=False, n_threads=1)

    def ask(self, terms, request):
        start = time.perf_counter_ns()
        found = self.retrieve(terms, request["k"], request["ids"])
        return (time.perf_counter_ns() - start) / 1e3, found.documents.shape[1]

    def answer(self, terms, request):
        found = self.retrieve(terms, request["k"])
        # bm25s fills the answer up with documents that have none of the terms.
        pairs = zip(found.documents[0], found.scores[0])
        return [[str(id), float(score)] for id, score in pairs if score > 0]

    def overhead(self, k):
        # The time is that of the call that users make, so there is nothing to subtract.
        return {"empty_us": 0.0, "row_us": 0.0}


if __name__ == "__main__":
    serve(Bm25s)
