"""What tests do with pages of a browser."""

from stores import wait_until

__all__ = ["accept_dialogs", "reload_until"]


def accept_dialogs(page):
    """On a busy machine JupyterLab may not know its kernels yet, and asks for one."""
    page.add_locator_handler(
        page.locator(".jp-Dialog button.jp-mod-accept"), lambda button: button.click()
    )


def reload_until(page, seen):
    """Reload the page until `seen()`: Chromium may store what was kept a bit later."""

    def again():
        page.reload()
        return seen()

    wait_until(again)
