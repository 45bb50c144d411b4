"""Runs a submission's own cells in a kernel in a jail, and replaces it when it is lost.

A cell that does not end is interrupted. If that does not help, or if the cell ends its
kernel, there is a new kernel in a new jail, in which the cells that ran well are run
again: what a later step needs is there, and only the culprit is missing.
"""

import time

from nbclient.client import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbclient.util import ensure_async, run_sync
from nbformat import NotebookNode
from nbgrader.preprocessors import Execute
from traitlets import Float, Integer

from distlab.grading.marking.outputs import plain, trouble
from distlab.grading.marking.provisioner import DeskManager, KernelNotThere

__all__ = ["Lost", "Running"]

_ANSWER_S, _PASS_S = 3.0, 10.0
_LATE = "This cell did not end within {:g} s"


class Lost(Exception):
    """There is no kernel any more that could answer."""


class Running(Execute):
    """nbgrader's `Execute` for code that is not to be trusted."""

    timeout = Integer(60, help="Seconds that a cell may take.").tag(config=True)
    exercise_timeout = Float(
        600.0, help="Seconds that a whole submission may take, checks included."
    ).tag(config=True)
    restarts = Integer(
        3, help="How often a submission gets a new kernel in place of a lost one."
    ).tag(config=True)
    output_bytes = Integer(10**6, help="What a cell may print.").tag(config=True)
    output_lines = Integer(2000, help="What a cell may print.").tag(config=True)
    iopub_timeout = Integer(4, help=Execute.iopub_timeout.help).tag(config=True)
    raise_on_iopub_timeout = False

    def _begin(self, nb, resources, room):
        """Get ready for a notebook; room: what the kernel's jail is like."""
        NotebookClient.__init__(self, nb, None)
        self.reset_execution_trackers()
        self._check_assign_resources(resources)
        self.timeout_func = lambda cell: max(1.0, min(self.timeout, self._left()))
        limits = {"output_bytes": self.output_bytes, "output_lines": self.output_lines}
        self._told = room | limits
        self._good, self._replaced = [], 0
        self._last = NotebookNode(outputs=[])
        self._deadline = time.monotonic() + self.exercise_timeout
        self._start()

    def _left(self):
        """Return the seconds that are left for the exercise."""
        return self._deadline - time.monotonic()

    def _start(self):
        self.km = DeskManager(told=self._told, log=self.log)
        run_sync(self.km.start_kernel)()
        self.start_new_kernel_client()

    def _end(self):
        """Have the kernel gone, and all that it started."""
        if self.km is None:
            return
        self.km.provisioner.stop()
        if self.kc is not None:
            self.kc.stop_channels()
        run_sync(self.km.cleanup_resources)()
        self.km = self.kc = None

    def _run(self, cell, index):
        """Run one of the submission's cells; whatever happens, there is a next one."""
        cell.outputs, cell.execution_count = [], None
        if not cell.source.strip():
            return
        if self._left() <= 0:
            cell.outputs = [trouble("This cell was not run: the time was over.")]
        elif not self._alive():
            cell.outputs = [trouble("This cell was not run: no kernel was left.")]
        else:
            why = self._lost_by(cell, index)
            cell.outputs = plain(cell.outputs, self.output_bytes)
            if why:
                self.log.warning("Cell %i: %s", index, why)
                self._renew()
                cell.outputs.append(trouble(f"{why} {self._rest('in a new kernel')}"))
            elif self._late_s:
                kept = self._rest("with what it had made until then")
                why = f"{_LATE.format(self._late_s)}, and was interrupted. {kept}"
                cell.outputs.append(trouble(why))

    def _rest(self, how):
        """Say what becomes of the cells that follow."""
        if self._left() <= 0:
            return "No cell after it was run: the time for the exercise is over."
        if self.kc is None:
            return "No cell after it was run: no kernel is left."
        return f"The cells after it were run {how}."

    def _lost_by(self, cell, index):
        """Run a cell; return "" or, if that cost the kernel, how."""
        self._late_s, self._heard = 0, 0
        self._display_id_map.clear()  # what has been cleaned is not written to again
        provisioner = self.km.provisioner
        try:
            self.execute_cell(cell, index, store_history=True)
        except DeadKernelError:
            if self._heard > self.output_bytes:
                return "This cell printed more than is kept, and was ended."
            return f"This cell ended its kernel. {provisioner.why}".strip()
        except Exception as error:  # a kernel can be made to say what none would say
            self.log.warning("The kernel made no sense: %r", error, exc_info=True)
            return "The kernel's answers to this cell made no sense."
        if self._late_s:
            ended = self._reply("") is not None
            told = f"{_LATE.format(self._late_s)}, nor when it was interrupted."
            return "" if ended else told
        if self._reply("pass", _PASS_S, silent=True, store_history=False) is None:
            return "After this cell the kernel did not run any other."
        self._good.append(cell.source)
        self._last = cell
        return ""

    def _alive(self):
        """Return whether there is a kernel; replace one that ended after its cell."""
        if self.kc is not None and not run_sync(self.km.is_alive)():
            self._good = self._good[:-1]
            self._renew()
            why = f"This cell ended its kernel. {self._rest('in a new kernel')}"
            self._last.outputs.append(trouble(why))
        return self.kc is not None

    async def _async_handle_timeout(self, timeout, cell=None):
        self._late_s = round(timeout, 1)
        await super()._async_handle_timeout(timeout, cell)
        return {"content": {"status": "ok"}}  # what was late about it is told in `_run`

    def process_message(self, msg, cell, cell_index):
        """Take in a message, unless there have been too many: then end the kernel."""
        if msg["msg_type"] != "status":
            self._heard += len(repr(msg["content"]))
            if self._heard > 8 * self.output_bytes:
                self.km.provisioner.stop()
                return None
        return super().process_message(msg, cell, cell_index)

    def _renew(self):
        """Get a new kernel in which everything is that ran well, or have none."""
        self._end()
        while self._replaced < self.restarts and self._left() > 0:
            self._replaced += 1
            try:
                self._start()
            except (KernelNotThere, RuntimeError) as error:
                self.log.warning("No new kernel: %s", error)
                continue
            failed = next((s for s in self._good if not self._again(s)), None)
            if failed is None:
                return
            self._good.remove(failed)
            self._end()

    def _again(self, source):
        """Run a cell once more, silently; return whether it came to its end."""
        seconds = min(self.timeout, self._left())
        return self._reply(source, seconds, store_history=True) is not None

    def _reply(self, source, seconds=_ANSWER_S, **options):
        """Return what the kernel replies, or None if it does not."""
        return run_sync(self._async_reply)(source, seconds, options)

    async def _async_reply(self, source, seconds, options):
        deadline = time.monotonic() + seconds
        asked = self.kc.execute(source, allow_stdin=False, **options)
        while (left := deadline - time.monotonic()) > 0:
            reply = await self._message(self.kc.shell_channel, min(left, 0.1))
            while await self._message(self.kc.iopub_channel, 0):
                pass  # what it prints now has been seen
            if reply and reply.get("parent_header", {}).get("msg_id") == asked:
                return reply.get("content")
            if not await self.km.is_alive():
                return None
        return None

    async def _message(self, channel, seconds):
        """Return a channel's next message; None if there is none that makes sense."""
        try:
            return await ensure_async(channel.get_msg(timeout=seconds))
        except Exception:  # nothing has come, or what no kernel sends
            return None
