"""The host ahead of a GPU: it enqueues a step with the update of the one before, and still
reports each step's own numbers, in order. On the emulated driver (test_cuda.py).
"""
import collections
import pathlib
import time

import numpy as np

import tools
from test_cuda import GPU, ONE, emulated
from test_parallel import RATE, Agreement
from test_sharded import BATCH, CORPUS, LLAMA, SEQUENCE, spec

STEPS = 5
TWO = ({"dp": 2, "fsdp": 1, "tp": 1}, False, 1)
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2"]
# Of loss and gradient norm: a few steps on, sums in another order have been
# multiplied by what Adam makes of the smallest gradients.
CLOSE = 1e-4


def calls(path):
    """(name, handle) of each call of the driver that was noted."""
    return [tuple(line.split()) for line in pathlib.Path(path).read_text().splitlines()]


def results(noted):
    """Where results are on their way to the host: each is copied with the number of its step,
    an event behind both."""
    return [at for at, (name, _) in enumerate(noted)
            if name == "eventRecord" and at >= 2 and noted[at - 1] == noted[at - 2] and
            noted[at - 1][0] == "copyToHost"]


def work_before_wait(noted):
    """For each result the calls from there to the first question for it."""
    return [collections.Counter(call for call, _ in noted[at + 1:noted.index(("eventQuery", noted[at][1]), at)])
            for at in results(noted)]


class Ahead(Agreement):
    batch, sequence, corpus = BATCH, SEQUENCE, CORPUS

    @classmethod
    def setUpClass(cls):
        cls.space = tools.Workspace(**emulated())
        cls.addClassCleanup(cls.space.close)

    def setUp(self):
        self.weights = self.space.save_weights(self.random_weights(LLAMA))

    def train(self, layout, *options, launcher=(), steps=STEPS, device="cuda", **variables):
        with tools.Workspace(**emulated(MESHWORK_EMULATOR_DEVICES="2", **variables)) as space:
            plan = space.compile(LLAMA, spec(*layout, **(GPU if device == "cuda" else {})))
            return space.train(plan, CORPUS, steps, *options, lr=RATE, init=self.weights,
                               launcher=launcher).metrics

    def test_each_step_has_its_own_numbers(self):
        expected = self.train(ONE, device="cpu")
        for key in ("loss", "grad_norm"):  # else a step's shift would not show
            apart = np.abs(np.diff([line[key] for line in expected]))
            self.assertGreater(apart.min(), 10 * CLOSE * expected[0][key])
        cases = {"one rank": (ONE, [], {}),
                 "without graphs": (ONE, ["--synchronous"], {}),
                 "watched": (ONE, ["--profile"], {}),
                 "late": (ONE, [], {"MESHWORK_EMULATOR_JITTER_US": "2000"}),
                 "one GPU": (TWO, ["--share-gpu"], {}),
                 "NCCL": (TWO, [], {}),
                 "NCCL, late": (TWO, [], {"MESHWORK_EMULATOR_JITTER_US": "1000"}),
                 "NCCL, processes": (TWO, [], {"launcher": MPIRUN})}
        for name, (layout, options, more) in cases.items():
            with self.subTest(name):
                begin = time.monotonic()
                metrics = self.train(layout, *options, **more)
                elapsed_ms = 1e3 * (time.monotonic() - begin)
                self.assertEqual([line["step"] for line in metrics], list(range(STEPS)))
                self.assertEqual([line["lr"] for line in metrics],
                                 [line["lr"] for line in expected])
                for key in ("loss", "grad_norm"):
                    np.testing.assert_allclose([line[key] for line in metrics],
                                               [line[key] for line in expected], rtol=CLOSE)
                for line in metrics:
                    self.assertGreater(line["step_ms"], 0)
                    self.assertGreaterEqual(line["compute_ms"], 0)
                    self.assertAlmostEqual(line["step_ms"], sum(
                        line[key] for key in ("compute_ms", "comm_ms", "idle_ms")),
                        delta=1e-4 * line["step_ms"])
                self.assertLess(sum(line["step_ms"] for line in metrics), elapsed_ms)

    def test_the_next_step_is_enqueued_with_the_update(self):
        """The host looks at loss and norm before it lets the update run. Then it enqueues the
        update and the next step up to its look, and waits for nothing in between."""
        log = self.space.file(".calls")
        self.train(ONE, MESHWORK_EMULATOR_CALLS=log)
        noted = calls(log)
        looks = results(noted)
        self.assertEqual(len(looks), 2 * STEPS)
        for norm, loss in zip(looks[1::2], looks[2::2]):
            answered = max(at for at in range(norm, loss) if noted[at] == ("eventQuery", noted[norm][1]))
            done = collections.Counter(call for call, _ in noted[answered + 1:loss])
            # The update; the step's list, each microbatch forward and backward, and the norm.
            self.assertEqual(done["graphLaunch"], 1 + 2 + 2 * BATCH, done)
            self.assertGreaterEqual(done["copyToDevice"], 2 * BATCH)
            self.assertEqual(done["streamQuery"], 0, done)

    def test_a_step_that_is_waited_for_ends_before_the_next(self):
        log = self.space.file(".calls")
        self.train(ONE, "--synchronous", MESHWORK_EMULATOR_CALLS=log)
        for span in work_before_wait(calls(log)):
            self.assertEqual((span["graphLaunch"], span["copyToDevice"]), (0, 0), span)
