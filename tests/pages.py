"""Pages of a browser that keep what a reader wrote."""

from stores import wait_until

__all__ = ["reload_until"]


def reload_until(page, seen):
    """Reload the page until `seen()`: Chromium may store what was kept a bit later."""

    def again():
        page.reload()
        return seen()

    wait_until(again)
