"""The state of a simulation: what the engine, the machine models and the orders share. It imports none of them."""
