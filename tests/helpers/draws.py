"""The size of random tests: ``SWFLOW_RANDOM_CASES=250`` lets each of them draw 2.5 times as many cases."""

import os

#: The unit of the numbers of cases.
CASES = int(os.environ.get("SWFLOW_RANDOM_CASES", "100"))
