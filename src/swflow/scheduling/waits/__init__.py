"""Why jobs wait: the division of the waits of a schedule into reasons."""
