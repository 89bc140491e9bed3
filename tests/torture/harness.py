"""Runs the program under faults, and tells whether a run came through them unharmed."""

import json
import os
import resource
import shutil
import signal
import struct
import subprocess

MODEL = "--layers 1 --heads 1 --width 8 --context 8 --batch 2 --eval-batches 1".split()
STATE, LOG = "last.safetensors", "log.jsonl"
LOCK = ".headwise-lock"  # says who had it last; it stays
# Calls that change what is on the disk; a kill before any other is a kill before the next of these.
CHANGES = {"create", "write", "fsync", "rename", "link", "unlink", "mkdir", "ftruncate", "chmod"}
TIMEOUT = 60  # seconds that nothing here takes, on any machine


class Result:
    """What came of a command: its exit code (negative: the signal that ended it) and its words."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit code {self.code}, stderr:\n{self.err}"


class Program:
    """The program, run with a fault layer between it and the files of a folder."""

    def __init__(self, path, layer, work):
        self.path, self.layer, self.work = path, layer, work
        self.env = dict(os.environ, GOMP_SPINCOUNT="0", OPENBLAS_NUM_THREADS="1", LC_ALL="C")
        if os.uname().machine == "x86_64":  # so that the program does not start itself again
            self.env.setdefault("OPENBLAS_CORETYPE", "Prescott")
        for name in ("FAULT_FOLDER", "FAULT_AT", "FAULT", "FAULT_CALLS"):
            self.env.pop(name, None)

    def start(self, args, folder=None, at=None, fault=None, calls=None, file_size=None,
              stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        env = dict(self.env)
        if folder is not None:
            env.update(LD_PRELOAD=self.layer, FAULT_FOLDER=folder)
        if fault is not None:
            env.update(FAULT_AT=str(at), FAULT=fault)
        if calls is not None:
            env["FAULT_CALLS"] = calls

        def prepare():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # nohup ignores them
                signal.signal(number, signal.SIG_DFL)
            if file_size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, resource.RLIM_INFINITY))

        return subprocess.Popen([self.path, *args], env=env, stdin=subprocess.DEVNULL,
                                stdout=stdout, stderr=stderr, cwd=self.work, preexec_fn=prepare,
                                text=True, errors="replace")

    def wait(self, process):
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err = (err or "") + f"\n(killed by the test after {TIMEOUT} s)"
        return Result(process.returncode, out or "", err or "")

    def run(self, args, **fault):
        return self.wait(self.start(args, **fault))

    def calls(self, args, folder):
        """The calls that a command makes on files of a folder, in order: (name, path inside)."""
        listed = os.path.join(self.work, "calls")
        result = self.run(args, folder=folder, calls=listed)
        assert result.code == 0, f"{' '.join(args)}: {result}"
        with open(listed, encoding="utf-8") as file:
            calls = [line.rstrip("\n").split(" ", 1) for line in file]
        os.unlink(listed)
        return [(name, os.path.relpath(path, folder)) for name, path in calls]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def log_lines(folder):
    """log.jsonl without what depends on time; a line that is not JSON stays as it is."""
    path = os.path.join(folder, LOG)
    lines = []
    if os.path.exists(path):
        for line in read(path).decode(errors="replace").split("\n"):
            try:
                event = json.loads(line)
                event.pop("tokens_per_second", None)
                line = json.dumps(event, sort_keys=True)
            except ValueError:
                pass
            lines.append(line)
    return lines


def snapshot(folder):
    """A run's files by name; the log's lines without what depends on time."""
    files = {name: read(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
             if name != LOCK}
    files[LOG] = log_lines(folder)
    return files


def differences(a, b):
    """The names of the files in which two snapshots differ."""
    return sorted(name for name in {*a, *b} if a.get(name) != b.get(name))


def steps_of(folder):
    """The steps that the state in a folder has done; 0 without one. Raises for a torn file."""
    path = os.path.join(folder, STATE)
    if not os.path.exists(path):
        return 0
    data = read(path)
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    assert len(data) == 8 + size + end, f"{path}: torn"
    return int(header["__metadata__"]["steps"])


class Failures:
    """Counts by name, and what went wrong, printed as it comes."""

    def __init__(self):
        self.counts, self.total = {}, 0

    def count(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n

    def check(self, ok, what, case, detail=""):
        """Counts a failure of that name unless ok."""
        self.counts.setdefault(what, 0)
        if not ok:
            self.counts[what] += 1
            self.total += 1
            print(f"FAILED ({what}): {case}: {detail}", flush=True)
        return ok

    def summary(self, part, seconds):
        text = ", ".join(f"{n} {what}" for what, n in self.counts.items())
        print(f"{part}: {text}; {seconds:.0f} s", flush=True)
        self.counts = {}


class Training:
    """A run that takes milliseconds, its undisturbed end, and the way back to it."""

    def __init__(self, program, name, options, steps=6):
        self.program, self.steps = program, steps
        self.base = os.path.join(program.work, name)
        os.makedirs(self.base)
        self.options = ["--steps", str(steps), "--threads", "1", "--json", *MODEL, *options]
        reference = self.folder("undisturbed")
        self.calls = program.calls(self.train(reference), reference)
        self.end = snapshot(reference)
        self.number = 0

    def folder(self, name=None):
        """A path for a run, where there is none."""
        if name is None:
            self.number += 1
            name = f"run{self.number}"
        return os.path.join(self.base, name)

    def train(self, folder, *more):
        return ["train", "--out", folder, *self.options, *more]

    @staticmethod
    def resume(folder):
        return ["train", "--resume", folder, "--json", "--threads", "1"]

    def go_on(self, folder):
        """The command that a user gives to go on with what a fault left."""
        return self.resume(folder) if steps_of(folder) > 0 else self.train(folder)

    def stopped_at(self, steps):
        """A run's files after so many steps, undisturbed."""
        folder = self.folder(f"stopped{steps}")
        if not os.path.exists(folder):
            result = self.program.run(self.train(folder, "--stop-after", str(steps)))
            assert result.code == 0, str(result)
        return snapshot(folder)

    def recover(self, failures, folder, case):
        """Goes on to the end, which must be that of the undisturbed run; removes the folder."""
        try:
            args = self.go_on(folder)
        except (ValueError, AssertionError, KeyError, struct.error) as e:
            failures.check(False, "lost", case, f"the state cannot be read: {e}")
            return
        result = self.program.run(args)
        if not failures.check(result.code == 0, "lost", case, f"{args[1]}: {result}"):
            return
        self.compare(failures, folder, case)

    def compare(self, failures, folder, case):
        """The folder must hold what the undisturbed run left; it is removed."""
        differing = differences(snapshot(folder), self.end)
        logs = LOG in differing
        failures.check(not logs, "different logs", case,
                       f"{log_lines(folder)}\n  instead of\n  {self.end[LOG]}")
        states = [name for name in differing if name in self.end and name != LOG]
        failures.check(not states, "different states", case, ", ".join(states))
        left = [name for name in differing if name not in self.end]
        failures.check(not left, "files left over", case, ", ".join(left))
        shutil.rmtree(folder)


def chosen(rng, items, count):
    """`count` of the items, evenly spread with a random offset in each part; all when fewer."""
    if count is None or count >= len(items):
        return list(items)
    return [items[int((i + rng.random()) * len(items) / count)] for i in range(count)]


def text_of(rng):
    """A text of a few characters, long enough to hold a part back."""
    words = "the cat dog sat on mat ran to a red big hen".split()
    return "".join(" ".join(rng.choice(words) for _ in range(6)) + ".\n" for _ in range(40))


def reported(result, folder):
    """Whether the program says in one line what failed, with a path of the run, and exits with 1."""
    lines = result.err.strip().split("\n")
    return (result.code == 1 and lines[-1].startswith("headwise: ") and folder in lines[-1]
            and "filesystem error" not in lines[-1])
