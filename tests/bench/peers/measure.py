"""What the PyTorch peers share: options, timing, and the JSON line."""
import argparse
import json
import resource
import time

import torch


def options(configs, default):
    """A parser of --config, --threads and --seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", choices=configs, default=default)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    return parser


def prepare(threads):
    torch.set_num_threads(threads)
    torch.manual_seed(0)


def measure(seconds, work):
    """Median and least seconds of work(), as `headwise bench` takes them: two runs unmeasured, then
    again and again for `seconds`, three times at least."""
    for _ in range(2):
        work()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    times.sort()
    return times[len(times) // 2], times[0]


def report(mode, args, median, least, **more):
    print(json.dumps({
        "engine": f"torch {torch.__version__}",
        "mode": mode,
        "config": args.config,
        "threads": args.threads,
        "ms": round(1e3 * median, 3),
        "min_ms": round(1e3 * least, 3),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        **more,
    }))
