"""The parts into which the waits of jobs are divided."""

#: The parts of a wait, in the order in which a second is given to the first that applies.
PARTS = ("eligibility", "limit", "room", "order", "latency")

#: The parts of ``room``; the rest of it is that running jobs leave too few processors or units of a resource.
OF_ROOM = ("fragmentation", "drain")

#: The columns of the table besides ``job_id``.
REASONS = ("eligibility", "limit", "room", "fragmentation", "drain", "order", "latency")
