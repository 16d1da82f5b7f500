"""
Simulate FCFS and EASY as in a textbook, in plain Python without a library.

    pypy3 benchmarks/plain_simulator.py kth.swf 100 easy > starts.txt

The script reads a log in the Standard Workload Format and writes the number and the start time of each job, one per
line. It is independent of swflow, so that `peers.py` can compare the two. Plans use the requested times, or the run
times if these are longer.
"""

import heapq
import sys
import time
from collections import namedtuple

Job = namedtuple("Job", "submit number run planned processors")


def read(path):
    """Return the jobs of a log by submission; sizes are the allocated processors, else the requested ones."""
    jobs = []
    with open(path) as lines:  # noqa: PTH123  runs on old interpreters as well
        for line in lines:
            fields = [float(field) for field in line.split(";")[0].split()]
            if fields:
                run, processors = fields[3], int(fields[4] if fields[4] > 0 else fields[7])
                jobs.append(Job(fields[1], int(fields[0]), run, max(run, fields[8], 1), processors))
    return sorted(jobs)


def simulate(jobs, machine, easy):
    """Return the start times by job number: at one instant completions, then arrivals, then one pass."""
    starts, ends, plan, queue = {}, [], {}, []
    free, coming = machine, 0
    while coming < len(jobs) or ends:
        now = min(ends[0][0] if ends else float("inf"), jobs[coming].submit if coming < len(jobs) else float("inf"))
        while ends and ends[0][0] <= now:
            job = heapq.heappop(ends)[2]
            free += job.processors
            del plan[job.number]
        while coming < len(jobs) and jobs[coming].submit <= now:
            queue.append(jobs[coming])
            coming += 1
        begin = []
        while queue and queue[0].processors <= free:
            begin.append(queue.pop(0))
            free -= begin[-1].processors
            plan[begin[-1].number] = (now + begin[-1].planned, begin[-1].processors)
        if easy and len(queue) > 1:
            shadow, extra = now, free
            for end, processors in sorted(plan.values()):
                if extra >= queue[0].processors and end > shadow:
                    break
                shadow, extra = end, extra + processors
            extra -= queue[0].processors
            behind, queue = queue[1:], queue[:1]
            for job in behind:
                in_time = now + job.planned <= shadow
                if job.processors <= free and (in_time or job.processors <= extra):
                    begin.append(job)
                    free -= job.processors
                    extra -= 0 if in_time else job.processors
                    plan[job.number] = (now + job.planned, job.processors)
                else:
                    queue.append(job)
        for job in begin:
            starts[job.number] = now
            heapq.heappush(ends, (now + job.run, job.number, job))
    return starts


if __name__ == "__main__":
    log = read(sys.argv[1])
    began = time.process_time()
    found = simulate(log, int(sys.argv[2]), sys.argv[3] == "easy")
    print("simulation:", time.process_time() - began, file=sys.stderr)
    for number, start in sorted(found.items()):
        print(number, start)
