"""One line about this machine and the day, to stand above what was measured."""
import datetime
import os
import platform


def field(path, name):
    """The value of the first line `name: value` of a file in /proc, or nothing."""
    try:
        with open(path) as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() == name:
                    return value.strip()
    except OSError:
        pass
    return ""


def machine():
    cpu = field("/proc/cpuinfo", "model name") or platform.machine()
    cores = len(os.sched_getaffinity(0))
    gigabytes = int((field("/proc/meminfo", "MemTotal") or "0").split()[0]) / 2**20
    return f"{cpu}, {cores} cores, {gigabytes:.0f} GB; {datetime.date.today()}"


if __name__ == "__main__":
    print(machine())
