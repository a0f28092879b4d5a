"""The protocol of the peers. Requests and replies are lines of JSON; postings are read from files of the suite.

A driver is started as `NAME_peer.py POSTINGS INDEX`; that of Lucene is written in Java and has the same arguments. It
builds its index in the folder INDEX unless it exists, writes one line about itself, and then replies to each line that it
reads with one line:

    {"what": "times", "mode": "or", "k": 10, "ids": true, "algorithm": "maxscore", "queries": [["term", ...], ...]}
        {"us": [time of each query], "rows": [hits of each query]}; without "ids", times are those of document numbers,
        if the peer can do without external ids
    {"what": "answers", ...the same}
        {"answers": [[["id", score], ...], ...]}
    {"what": "overhead", "k": 10}
        {"empty_us": time of a query without terms, "row_us": time to pass one hit to Python}

A reply {"error": "..."} gives the reason of a failure.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy


class Postings:
    """The lists of a collection, in the files described in postings.rs."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.lengths = numpy.fromfile(self.folder / "list_lengths", dtype=numpy.uint32)
        self.sizes = numpy.fromfile(self.folder / "inv.sizes", dtype=numpy.uint32)[1:]

    def terms(self):
        return (self.folder / "fwd.terms").read_text(encoding="utf-8").split("\n")[:-1]

    def ids(self):
        return (self.folder / "fwd.documents").read_text(encoding="utf-8").split("\n")[:-1]

    def documents(self):
        # The first sequence, of length 1, holds the number of documents.
        return self._numbers("inv.docs", 2)

    def frequencies(self):
        return self._numbers("inv.freqs", 0)

    def _numbers(self, name, skip):
        """All lists, without the length before each of them."""
        words = numpy.fromfile(self.folder / name, dtype=numpy.uint32)[skip:]
        is_posting = numpy.ones(len(words), dtype=bool)
        before = numpy.cumsum(self.lengths, dtype=numpy.int64) - self.lengths
        is_posting[before + numpy.arange(len(self.lengths))] = False
        return words[is_posting]


def median_us(run, repetitions):
    """Returns the median time of a call in microseconds."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(times)


def serve(open_peer):
    """Opens the peer and replies to requests until the input ends."""
    # Keeps the output of libraries apart from replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(value):
        print(json.dumps(value), file=replies, flush=True)

    try:
        peer = open_peer(sys.argv[1], Path(sys.argv[2]))
        reply(peer.about())
    except Exception as error:
        reply({"error": f"{type(error).__name__}: {error}"})
        return
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["what"] == "overhead":
                reply(peer.overhead(request["k"]))
            elif request["what"] == "times":
                results = [peer.ask(terms, request) for terms in request["queries"]]
                reply({"us": [us for us, _ in results], "rows": [rows for _, rows in results]})
            else:
                reply({"answers": [peer.answer(terms, request) for terms in request["queries"]]})
        except Exception as error:
            reply({"error": f"{type(error).__name__}: {error}"})
