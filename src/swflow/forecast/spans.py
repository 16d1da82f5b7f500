"""Durations as text."""


def span(seconds: float) -> str:
    """
    Return a duration as text, to two units.

    Examples
    --------
    >>> span(11400), span(45), span(0.3), span(200000), span(100000000)
    ('3 h 10 min', '45 s', '0 s', '2 d 8 h', '1,157 d')
    """
    if seconds != seconds:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d {hours} h" if hours and days < 10 else f"{days:,} d"
