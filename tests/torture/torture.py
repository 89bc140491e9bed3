#!/usr/bin/env python3
"""Kills, failing calls, two processes, signals and full disks: a run comes through all of them.

usage: torture.py PROGRAM LAYER [--all] [--seed N] [PART ...]

PROGRAM is headwise, LAYER the library of fault_layer.cpp. Parts: kills errors studies pairs signals
disks outputs; without any, all. A share of the cases is run, the same for the same seed; --all runs
every one. Prints what was counted, and exits with 1 when a run was lost or is not what an
undisturbed one is.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import (CHANGES, MODEL, STATE, Failures, Program, Training, chosen, read, reported, snapshot,
                     steps_of, text_of)

# What a call may fail with; EINTR and a short count are no failures, but a matter of calling again.
ERRORS = {"open": ["EIO", "EMFILE", "EACCES"], "create": ["EIO", "ENOSPC", "EACCES"], "read": ["EIO", "EINTR", "short"],
          "write": ["ENOSPC", "EIO", "EDQUOT", "EINTR", "short"],
          "fsync": ["EIO", "ENOSPC"], "rename": ["EIO", "ENOSPC"], "link": ["EIO"],
          "close": ["EIO", "EDQUOT", "EINTR"], "ftruncate": ["EIO", "ENOSPC"], "unlink": ["EIO"],
          "mkdir": ["ENOSPC", "EACCES"], "stat": ["EIO"], "chmod": ["EIO"],
          "lock": ["ENOLCK", "EINTR"], "mmap": ["ENOMEM"]}
HARMLESS = {"EINTR", "short"}
SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"]


def faults_of(calls):
    """What may happen to each of the calls: (number, call, path, fault)."""
    return [(at, call, path, fault) for at, (call, path) in enumerate(calls, 1)
            for fault in ERRORS[call]]


class Torture:
    def __init__(self, program, everything, seed):
        self.program, self.all = program, everything
        self.rng = random.Random(seed)
        self.failures = Failures()
        self.text = os.path.join(program.work, "text.txt")
        with open(self.text, "w", encoding="utf-8") as file:
            file.write(text_of(self.rng))
        self.often = ["--data", self.text, "--eval-every", "2", "--save-every", "1"]
        self.plain = Training(program, "plain", self.often)

    def share(self, items, count):
        return chosen(self.rng, items, None if self.all else count)

    def stopped_run(self, training, steps=2):
        """A run that was stopped early: something to resume."""
        folder = training.folder()
        result = self.program.run(training.train(folder, "--stop-after", str(steps)))
        assert result.code == 0, str(result)
        return folder

    # --- kills ---

    def kill(self, training, args, folder, at, fault, case):
        """Runs a command that kills itself at a call, and checks that no finished save is lost."""
        before = steps_of(folder) if os.path.exists(folder) else 0
        result = self.program.run(args, folder=folder, at=at, fault=fault)
        self.failures.check(result.code == -signal.SIGKILL, "not killed", case, str(result))
        self.failures.count("kills")
        if os.path.exists(folder):
            try:
                after = steps_of(folder)
            except Exception as e:  # whatever is wrong with it, the state is lost
                after = -1
                case = f"{case}: {e}"
            self.failures.check(after >= before, "lost", case, f"step {after} after {before}")

    def kills(self):
        """SIGKILL at each call that changes something while training, and at random moments."""
        self.kills_of(self.plain, "train", 20)
        self.timed_kills(60 if self.all else 6)

    def kills_of(self, training, name, count):
        places = [(at, fault) for at, (call, _) in enumerate(training.calls, 1) if call in CHANGES
                  for fault in (("kill", "kill-half") if call == "write" else ("kill",))]
        for at, fault in self.share(places, count):
            folder = training.folder()
            case = f"{name}: {fault} at call {at}, {' '.join(training.calls[at - 1])}"
            self.kill(training, training.train(folder), folder, at, fault, case)
            if self.rng.random() < 0.3 and os.path.exists(os.path.join(folder, STATE)):
                # once more while it goes on; where it has that many calls left
                again = self.rng.randint(1, 40)
                result = self.program.run(training.resume(folder), folder=folder, at=again,
                                          fault="kill")
                self.failures.count("kills", result.code == -signal.SIGKILL)
                case += f", then at call {again} of the resume"
            training.recover(self.failures, folder, case)

    def timed_kills(self, count):
        """SIGKILL from outside at a random moment, again and again until the run is done."""
        training = self.plain
        start = time.monotonic()
        self.program.run(training.train(training.folder("timed")))
        usual = time.monotonic() - start
        killed = 0
        while killed < count:
            folder = training.folder()
            while killed < count:
                done = os.path.exists(folder)
                process = self.program.start(training.go_on(folder) if done
                                             else training.train(folder))
                time.sleep(self.rng.random() * usual)
                process.kill()
                if self.program.wait(process).code != -signal.SIGKILL:
                    break
                killed += 1
                self.failures.count("kills")
            training.recover(self.failures, folder, f"killed after {killed} random times")

    # --- failing calls ---

    def fault(self, training, args, folder, at, fault, call, case):
        """Runs a command of which a call fails: it says so with exit code 1, or does its work."""
        result = self.program.run(args, folder=folder, at=at, fault=fault)
        self.failures.count("errors injected")
        silent = result.code == 0
        if fault in HARMLESS and call in ("read", "write"):
            self.failures.check(silent, "not called again", case, str(result))
        if silent:
            training.compare(self.failures, folder, case)
            return
        self.failures.check(reported(result, folder), "not reported", case, str(result))
        left = [n for n in os.listdir(folder) if "tmp" in n] if os.path.isdir(folder) else []
        self.failures.check(call == "unlink" or not left, "temporaries left", case, ", ".join(left))
        training.recover(self.failures, folder, case)

    def errors(self):
        """Each call on the run's files fails in turn, while training and while resuming."""
        self.errors_of(self.plain, "train", 16)

    def errors_of(self, training, name, count):
        stopped = self.stopped_run(training)
        spare = training.folder()
        shutil.copytree(stopped, spare)
        resumed = self.program.calls(training.resume(spare), spare)
        shutil.rmtree(spare)
        for calls, resumes in ((training.calls, False), (resumed, True)):
            for at, call, path, fault in self.share(faults_of(calls), count):
                folder = training.folder()
                if resumes:
                    shutil.copytree(stopped, folder)
                args = training.resume(folder) if resumes else training.train(folder)
                case = f"{'resume' if resumes else name}: {fault} at call {at}, {call} {path}"
                self.fault(training, args, folder, at, fault, call, case)

    def studies(self):
        """The same of a run that looks at its heads while it trains: its log has lines of two kinds."""
        training = Training(self.program, "studied", [*self.often, "--study-every", "2"], steps=4)
        self.kills_of(training, "train and study", 6)
        self.errors_of(training, "train and study", 5)

    # --- two processes ---

    def pairs(self):
        """Two processes on one run: the second is refused, says by whom, and changes nothing."""
        training = self.plain
        changes = [at for at, (call, _) in enumerate(training.calls, 1) if call in CHANGES]
        kinds = [("train", "train"), ("train", "resume"), ("resume", "resume"), ("resume", "train")]
        each = 5 if self.all else 2
        for first, second in kinds:
            for at in chosen(self.rng, changes[:60], each):
                self.pair(first, second, at)

    def pair(self, first, second, at):
        training, failures = self.plain, self.failures
        folder = training.folder() if first == "train" else self.stopped_run(training)
        case = f"{first} stands at call {at}, {second} comes"
        command = {"train": training.train(folder), "resume": training.resume(folder)}
        process = self.program.start(command[first], folder=folder, at=at, fault="SIGSTOP")
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            process.communicate()
            failures.count("interleavings that did not come about")
            return
        other = self.program.run(command[second])
        os.kill(process.pid, signal.SIGCONT)
        one = self.program.wait(process)
        failures.count("interleavings")
        refused = [r for r in (one, other) if r.code != 0]
        if not failures.check(len(refused) == 1, "not refused", case,
                              f"first: {one}\nsecond: {other}"):
            shutil.rmtree(folder, ignore_errors=True)
            return
        # Who came first to the run has it, and the other says who that is.
        holds_state = second == "train" and "holds a run already" in refused[0].err
        named = str(process.pid) in refused[0].err if refused[0] is other else True
        failures.check(refused[0].code in (1, 2) and (named or holds_state), "not said by whom",
                       case, str(refused[0]))
        training.compare(failures, folder, case)

    # --- signals ---

    def signals(self):
        """SIGINT, SIGTERM, SIGHUP at each call, and from outside: the state is saved within a step."""
        training = self.plain
        places = [(at, name) for at, (call, _) in enumerate(training.calls, 1) if call in CHANGES
                  for name in SIGNALS]
        for at, name in self.share(places, 9):
            folder = training.folder()
            case = f"{name} at call {at}, {' '.join(training.calls[at - 1])}"
            result = self.program.run(training.train(folder), folder=folder, at=at, fault=name)
            self.failures.count("signals")
            number = getattr(signal, name)
            self.failures.check(result.code in (0, 128 + number, -number), "exit codes", case,
                                str(result))
            if os.path.exists(folder):
                training.recover(self.failures, folder, case)
        for name in SIGNALS * (4 if self.all else 1):
            self.signal_from_outside(name)

    def signal_from_outside(self, name):
        """A run that never saves by itself gets a signal: what it saves is that many steps' state."""
        training = self.plain
        folder = training.folder()
        options = ["train", "--data", self.text, "--out", folder, "--threads", "1", "--steps",
                   "100000000", "--eval-every", "100000000", "--json", *MODEL]
        process = self.program.start([*options, "--sample-every", "20"])
        process.stdout.readline()  # it has done 20 steps
        time.sleep(0.1 * self.rng.random())
        process.send_signal(getattr(signal, name))
        result = self.program.wait(process)
        self.failures.count("signals")
        case = f"{name} from outside"
        steps = steps_of(folder) if os.path.exists(folder) else 0
        if not self.failures.check(steps >= 20, "lost", case, str(result)):
            return
        again = training.folder()
        options[options.index(folder)] = again
        self.program.run([*options, "--stop-after", str(steps)])
        same = read(os.path.join(folder, STATE)) == read(os.path.join(again, STATE))
        self.failures.check(same, "different states", case, f"at step {steps}")

    # --- full disks ---

    def disks(self):
        """A full disk, a limit on the size of files, and standard streams that take nothing."""
        training, failures = self.plain, self.failures
        places = [at for at, (call, _) in enumerate(training.calls, 1) if call == "write"]
        for at in self.share(places, 4):
            folder = training.folder()
            case = f"disk full from call {at} on"
            result = self.program.run(training.train(folder), folder=folder, at=f"{at}+",
                                      fault="ENOSPC")
            failures.count("full disks")
            failures.check(reported(result, folder), "not reported", case, str(result))
            training.recover(failures, folder, case)
        for size in (0, 1000, 10000):
            folder = self.stopped_run(training)
            case = f"files of {size} bytes at most"
            result = self.program.run(training.resume(folder), file_size=size)
            failures.count("full disks")
            failures.check(reported(result, folder), "not reported", case, str(result))
            training.recover(failures, folder, case)
        self.full_streams()
        self.full_tmpfs()

    def full_streams(self):
        """Results that cannot be written are a failure, messages are not; the run is saved."""
        training, failures = self.plain, self.failures
        for stream, code in (("stdout", 1), ("stderr", 0)):
            folder = training.folder()
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = self.program.run(training.train(folder), **{stream: full})
            failures.count("full streams")
            failures.check(result.code == code, "exit codes", f"{stream} is /dev/full", str(result))
            training.recover(failures, folder, f"{stream} is /dev/full")

    def full_tmpfs(self):
        """A file system of 64 kB; needs the right to mount one."""
        training, failures = self.plain, self.failures
        place = training.folder("small")
        os.makedirs(place)
        mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], check=False,
            stderr=subprocess.DEVNULL).returncode == 0
        if not mounted:
            print("a full tmpfs: skipped, no right to mount one")
            return
        try:
            folder = os.path.join(place, "run")
            with open(os.path.join(place, "other"), "wb") as other:
                other.write(bytes(20000))
            result = self.program.run(training.train(folder))
            failures.count("full disks")
            failures.check(reported(result, folder), "not reported", "tmpfs", str(result))
            os.unlink(os.path.join(place, "other"))
            training.recover(failures, folder, "tmpfs")
        finally:
            subprocess.run(["umount", place], check=False)

    # --- what other commands write ---

    def outputs(self):
        """A file that a command replaces is the old one or the new one, whatever fails."""
        folder = self.plain.folder("undisturbed")
        place = os.path.join(self.program.work, "outputs")
        os.makedirs(place)
        made = {"eval": ["eval", folder, "--json"], "sample": ["sample", folder, "--tokens", "5"],
                "study": ["study", folder, "--json", f"{place}/study.json", "--out",
                          f"{place}/study.html", "--patterns", f"{place}/patterns.safetensors"]}
        for name, args in made.items():
            args = [*args, "--threads", "1"]
            whole = self.program.run(args)
            assert whole.code == 0, str(whole)
            for where in (folder, place):
                calls = self.program.calls(args, where)
                for at, call, path, fault in self.share(faults_of(calls), 3):
                    self.output(args, where, whole, at, call, fault,
                                f"{name}: {fault} at call {at}, {call} {path}")

    def output(self, args, where, whole, at, call, fault, case):
        failures, before = self.failures, snapshot(where)
        result = self.program.run(args, folder=where, at=at, fault=fault)
        failures.count("errors injected")
        if fault in HARMLESS and call in ("read", "write"):
            failures.check(result.code == 0, "not called again", case, str(result))
        if result.code == 0:
            failures.check(result.out == whole.out, "different results", case, result.out)
        else:
            failures.check(reported(result, where), "not reported", case, str(result))
        after = snapshot(where)
        torn = [n for n in before if n != "log.jsonl" and after.get(n) != before[n]]
        failures.check(not torn, "torn files", case, ", ".join(torn))
        left = [n for n in after if n not in before]
        failures.check(call == "unlink" or not left, "temporaries left", case, ", ".join(left))


PARTS = ["kills", "errors", "studies", "pairs", "signals", "disks", "outputs"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("layer")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], default=[])
    options = parser.parse_args()
    work = os.path.realpath(tempfile.mkdtemp(prefix="headwise-torture-"))
    try:
        torture = Torture(Program(os.path.abspath(options.program), os.path.abspath(options.layer),
                                  work), options.all, options.seed)
        for part in options.part or PARTS:
            start = time.monotonic()
            getattr(torture, part)()
            torture.failures.summary(part, time.monotonic() - start)
        return 1 if torture.failures.total > 0 else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
