"""The machine: its processors counted, or numbered and placed, with what the processes of a node share."""
