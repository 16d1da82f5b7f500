"""The engine: one loop of events, the queue, and the scheduling passes, over plain arrays."""
