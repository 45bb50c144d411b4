"""The checks of exercise 11 say what went wrong; further mistakes than its variants."""

import time
from itertools import chain

import pytest
import torch
import torch.distributed as dist
from right_gradients import average, flat, hand_out, in_buckets

from distlab import run
from distlab.collectives import ring_all_reduce
from distlab.grading import (
    AccumulatedGradients,
    AveragedGradients,
    OverlappedGradients,
)
from distlab.grading.gradients.layout import laid_out
from distlab.train.data_parallel import share_of_batch


def told(check, hint):
    verdict = check.judge()
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict
    return verdict.found


# ---- step 1: buckets and means ---------------------------------------------------


def nothing(comm, buckets, all_reduce):
    pass


def not_copied_back(comm, buckets, all_reduce):
    for bucket in buckets:
        buffer = flat(bucket)
        all_reduce(comm, buffer)
        buffer /= comm.world_size


def divided_twice(comm, buckets, all_reduce):
    for bucket in buckets:
        buffer = flat(bucket) / comm.world_size
        all_reduce(comm, buffer)
        hand_out(bucket, buffer, comm.world_size)


def swapped(comm, buckets, all_reduce):
    average(comm, buckets, all_reduce)
    one, other = (p for p in chain(*buckets) if p.shape == (6,))
    one.grad, other.grad = other.grad, one.grad


def only_on_rank_0(comm, buckets, all_reduce):
    average(comm, buckets, all_reduce)
    if comm.rank:
        for p in chain(*buckets):
            p.grad.zero_()


def looked_up(comm, buckets, all_reduce):
    everything = list(chain(*buckets))
    average(comm, [[p for p in everything if p in b] for b in buckets], all_reduce)


def talkative(comm, buckets, all_reduce):
    average(comm, buckets, all_reduce)
    if comm.rank == 0:
        comm.send_object("done", 1)
    if comm.rank == 1:
        comm.recv_object(0)


def of_torch(comm, buckets, all_reduce):
    for bucket in buckets:
        buffer = flat(bucket)
        dist.all_reduce(buffer)
        hand_out(bucket, buffer, comm.world_size)


def moves_parameters(comm, buckets, all_reduce):
    average(comm, buckets, all_reduce)
    with torch.no_grad():
        buckets[0][0] += 0.1 * (comm.rank + 1)


def with_the_librarys_weights(comm, buckets, all_reduce):
    share_of_batch(comm, 4)


def with_the_librarys_ring(comm, buckets, all_reduce):
    average(comm, buckets, ring_all_reduce)


def unwritten(comm, buckets, all_reduce):
    raise NotImplementedError("write this step")


def bound_to_what_it_returns(comm, buckets, all_reduce):
    for bucket in buckets:
        buffer = flat(bucket)
        buffer = all_reduce(comm, buffer)
        hand_out(bucket, buffer, comm.world_size)


def divides_what_it_returns(comm, buckets, all_reduce):
    for bucket in buckets:
        hand_out(bucket, all_reduce(comm, flat(bucket)) / comm.world_size, 1)


def half_of_it(comm, buckets, all_reduce):
    average(comm, buckets, all_reduce)
    for p in chain(*buckets):
        p.grad = p.grad / 3 + 1


AVERAGES = [
    (bound_to_what_it_returns, "works in place and returns None"),
    (divides_what_it_returns, "works in place and returns None"),
    (half_of_it, "Which samples are in what you found"),
    (nothing, "has to come out of an all-reduce of every bucket"),
    (not_copied_back, "p.grad is another tensor until you copy"),
    (divided_twice, "divided by n once more"),
    (swapped, "This is the gradient of another parameter"),
    (only_on_rank_0, "This gradient is zero afterwards"),
    (looked_up, "compare tensors number by number"),
    (talkative, "need no other message"),
    (of_torch, "the algorithm itself is the exercise"),
    (moves_parameters, "All gradients were right, and the parameters are not"),
    (with_the_librarys_weights, "Borrowing is refused"),
    (with_the_librarys_ring, "Call the all_reduce that your function is given"),
    (unwritten, "Nothing of your own"),
]


@pytest.mark.parametrize("function, hint", AVERAGES)
def test_a_mistake_in_averaging_meets_the_hint_that_fits(function, hint):
    told(AveragedGradients([in_buckets, function], 2, "tied"), hint)


def blind_to_types(parameters, first_bytes, bucket_bytes):
    buckets, room = [], 0
    for p in [p for p in reversed(parameters) if p.requires_grad]:
        if not buckets or p.nbytes > room:
            room = bucket_bytes if buckets else first_bytes
            buckets.append([])
        buckets[-1].append(p)
        room -= p.nbytes
    return buckets


def blind_to_types_with_room_for_all(parameters, first_bytes, bucket_bytes):
    if sum(p.nbytes for p in parameters) <= first_bytes:
        return [[p for p in reversed(parameters) if p.requires_grad]]
    return in_buckets(parameters, first_bytes, bucket_bytes)


def never_quite_full(parameters, first_bytes, bucket_bytes):
    return in_buckets(parameters, first_bytes - 1, bucket_bytes - 1)


def reversed_in_place(parameters, first_bytes, bucket_bytes):
    parameters.reverse()
    return in_buckets(parameters[::-1], first_bytes, bucket_bytes)


LAYOUTS = [
    (reversed_in_place, "layers", "is the caller's, who finds it changed"),
    (blind_to_types, "types", "A buffer has one dtype"),
    (blind_to_types_with_room_for_all, "types", "A buffer has one dtype"),
    (never_quite_full, "layers", "exactly as many bytes as are left"),
    (never_quite_full, "tied", "exactly as many bytes as are left"),
]


@pytest.mark.parametrize("function, model, hint", LAYOUTS)
def test_a_rule_that_is_nearly_the_right_one_is_refused(function, model, hint):
    told(AveragedGradients([function, average], 2, model), hint)


@pytest.mark.parametrize("change, shown", [
    (lambda buckets: buckets[0], "[Parameter"),
    (iter, "<list_iter"),
    (lambda buckets: [map(torch.Tensor.flatten, b) for b in buckets], "[<map"),
])  # fmt: skip
def test_what_is_no_list_of_buckets_is_shown(change, shown):
    def changed(*arguments):
        return change(in_buckets(*arguments))

    found = told(AveragedGradients([changed, average], 1, "tied"), "a list of buckets")
    assert f"in_buckets returned {shown}" in found


def test_a_wrong_gradient_is_named_with_rank_bucket_and_both_numbers():
    found = told(AveragedGradients([in_buckets, only_on_rank_0], 3, "tied"), "is zero")
    assert found.startswith(
        "Training step 1, gradient of one.weight (bucket 2), position "
    )
    assert ", found 0 on rank 1.\nIt is wrong on ranks 1 and 2 of 3." in found


def leaves_one_without(comm, buckets, all_reduce):
    average(comm, buckets, all_reduce)
    buckets[0][0].grad = None


def test_a_gradient_that_is_missing_is_not_told_as_the_number_0():
    check = AveragedGradients([in_buckets, leaves_one_without], 2, "tied")
    found = told(check, "Nothing has given this parameter a gradient")
    assert ", found none at all on rank 0." in found


# ---- step 2: microbatches --------------------------------------------------------


def accumulating(weight, before=lambda p: None, exchange=average):
    def accumulate(comm, microbatches, total, buckets, all_reduce):
        own = [count for _, count in microbatches]
        for forward, count in microbatches:
            for p in chain(*buckets):
                before(p)
            (forward() * weight(comm.world_size, count, total, own)).backward()
        exchange(comm, buckets, all_reduce)

    return accumulate


def drop(p):
    p.grad = None


def idle_if_empty(comm, microbatches, total, buckets, all_reduce):
    if microbatches:
        right_weights(comm, microbatches, total, buckets, all_reduce)


def without_zeros(comm, buckets, all_reduce):
    for bucket in buckets:
        buffer = torch.cat([p.grad.flatten() for p in bucket])
        all_reduce(comm, buffer)
        hand_out(bucket, buffer, comm.world_size)


def of_another_type(comm, buckets, all_reduce):
    for bucket in buckets:
        parts = [torch.zeros(p.shape) if p.grad is None else p.grad for p in bucket]
        buffer = torch.cat([part.flatten() for part in parts])
        all_reduce(comm, buffer)
        hand_out(bucket, buffer, comm.world_size)


def only_what_is_there(comm, buckets, all_reduce):
    for bucket in buckets:
        parts = [p.grad.flatten() for p in bucket if p.grad is not None]
        all_reduce(comm, torch.cat(parts))


def moved_before_backward(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        loss = forward() * count * comm.world_size / total
        for p in chain(*buckets):
            p.data += 0.1
        loss.backward()
    average(comm, buckets, all_reduce)


def sum_of_losses(comm, microbatches, total, buckets, all_reduce):
    loss = sum(forward() * count for forward, count in microbatches)
    (loss * comm.world_size / total).backward()
    average(comm, buckets, all_reduce)


def right(n, count, total, own):
    return count * n / total


right_weights = accumulating(right)


def in_an_order_of_its_own(comm, buckets, all_reduce):
    average(comm, buckets[:: (-1) ** comm.rank], all_reduce)


ACCUMULATED = [
    (accumulating(right, exchange=in_an_order_of_its_own), "in the order of starting"),
    (accumulating(lambda n, count, total, own: 1), "each counts the same"),
    (accumulating(lambda n, count, total, own: 1 / len(own)), "Each rank counts"),
    (accumulating(lambda n, count, total, own: count), "larger by the number of"),
    (accumulating(lambda n, count, total, own: count / total), "by n once more"),
    (accumulating(right, before=drop), "Only the last microbatch is in it"),
    (accumulating(right, exchange=without_zeros), "has p.grad None"),
    (accumulating(lambda n, count, total, own: n / total), "each counts the same"),
    (accumulating(right, exchange=of_another_type), "has the dtype of its parameters"),
    (accumulating(right, exchange=only_what_is_there), "zeros, for each that has none"),
    (moved_before_backward, "it has another there"),
    (sum_of_losses, "over no microbatches a sum of losses is the number 0"),
    (idle_if_empty, "as zeros, where no sample has used"),
]


@pytest.mark.parametrize("function, hint", ACCUMULATED)
def test_a_mistake_in_accumulation_meets_the_hint_that_fits(function, hint):
    told(AccumulatedGradients(function, 3, "experts"), hint)


# ---- step 3: overlapped ----------------------------------------------------------


class Overlap:
    """A right answer, of which each mistake below changes one method."""

    def __call__(self, comm, microbatches, total, buckets, all_reduce):
        self.comm, self.buckets, self.all_reduce = comm, buckets, all_reduce
        self.missing = dict.fromkeys(chain(*buckets), len(microbatches))
        self.under_way = []
        hooks = [p.register_post_accumulate_grad_hook(self.hook) for p in self.missing]
        for forward, count in microbatches:
            (forward() * self.weight(count, total)).backward()
        self.remove(hooks)
        self.end()
        for bucket, buffer, request in self.under_way:
            self.wait(request)
            self.hand_out(bucket, buffer, comm.world_size)

    def weight(self, count, total):
        return count * self.comm.world_size / total

    def hand_out(self, *arguments):
        hand_out(*arguments)

    def wait(self, request):
        request.wait()

    def hook(self, p):
        self.missing[p] -= 1
        self.start_full()

    def start_full(self):
        for bucket in self.buckets[len(self.under_way) :]:
            if any(self.missing[p] for p in bucket):
                break
            self.start(bucket)

    def start(self, bucket):
        buffer = flat(bucket)
        request = self.comm.start(self.all_reduce, buffer)
        self.under_way.append((bucket, buffer, request))

    def end(self):
        for bucket in self.buckets[len(self.under_way) :]:
            self.start(bucket)

    def remove(self, hooks):
        for hook in hooks:
            hook.remove()


class Blocks(Overlap):
    def start(self, bucket):
        buffer = flat(bucket)
        self.all_reduce(self.comm, buffer)
        self.under_way.append((bucket, buffer, self.comm.start(lambda comm: None)))


class WaitsInside(Overlap):
    def start(self, bucket):
        super().start(bucket)
        self.under_way[-1][-1].wait()


class WaitsAfterEachStart(Overlap):
    def end(self):
        for bucket in self.buckets[len(self.under_way) :]:
            self.start(bucket)
            self.under_way[-1][-1].wait()


class WaitsBeforeItStartsTheRest(Overlap):
    def end(self):
        for *_, request in self.under_way:
            request.wait()
        super().end()


class OneForEachHook(Overlap):
    def start_full(self):
        (bucket,) = self.buckets[len(self.under_way) :][:1] or [[]]
        if bucket and not any(self.missing[p] for p in bucket):
            self.start(bucket)


class OneForEachHookAndNoMore(OneForEachHook):
    def end(self):
        pass


class OnTheSide(Overlap):
    def start(self, bucket):
        buffer = flat(bucket)
        request = self.comm.start(lambda comm: self.all_reduce(comm, buffer))
        self.under_way.append((bucket, buffer, request))


class StartsWhatItReturns(Overlap):
    def start(self, bucket):
        buffer = flat(bucket)
        request = self.comm.start(self.all_reduce(self.comm, buffer))
        self.under_way.append((bucket, buffer, request))


class StartsWithComm(Overlap):
    def start(self, bucket):
        buffer = flat(bucket)
        request = self.comm.start(self.all_reduce, self.comm, buffer)
        self.under_way.append((bucket, buffer, request))


class ForgetsWeights(Overlap):
    def weight(self, count, total):
        return 1


class UnpacksAndThenWaits(Overlap):
    def wait(self, request):
        self.late = [*getattr(self, "late", []), request]

    def hand_out(self, *arguments):
        hand_out(*arguments)
        self.late[-1].wait()


class SendsTwice(Overlap):
    def end(self):
        for bucket in self.buckets:
            self.start(bucket)


class LeavesHooks(Overlap):
    def remove(self, hooks):
        pass


class NeverStartsTheUnused(Overlap):
    def end(self):
        pass


class ForgetsToWait(Overlap):
    def wait(self, request):
        pass


class FullInTheFirstMicrobatch(Overlap):
    def hook(self, p):
        self.missing[p] = 0
        self.start_full()


class NotYetFull(Overlap):
    def start_full(self):
        for bucket in self.buckets[len(self.under_way) :]:
            if all(self.missing[p] for p in bucket):
                break
            self.start(bucket)


class ReadsBeforeItWaits(Overlap):
    def end(self):
        super().end()
        for _, buffer, request in self.under_way:
            while not request.is_completed():
                time.sleep(0.001)
            read = buffer.clone()
            request.wait()
            buffer.copy_(read)


class InReverse(Overlap):
    def hook(self, p):
        pass

    def end(self):
        for bucket in reversed(self.buckets):
            self.start(bucket)


OVERLAPPED = [
    (Blocks, "returns when it has ended, and so does your hook"),
    (WaitsInside, "A wait inside of a hook stops backward"),
    (WaitsAfterEachStart, "After the last start, and not before, wait"),
    (WaitsBeforeItStartsTheRest, "After the last start, and not before, wait"),
    (OneForEachHook, "whether the next bucket in turn is full now"),
    (OneForEachHookAndNoMore, "in each hook, start as many as are"),
    (OnTheSide, "Start all_reduce itself"),
    (SendsTwice, "leaves out what the hooks have started"),
    (LeavesHooks, "A hook stays until its handle's remove()"),
    (NeverStartsTheUnused, "as zeros, where no sample has used"),
    (ForgetsToWait, "comm.start returns before anything has arrived"),
    (FullInTheFirstMicrobatch, "Until the last microbatch gradients only add up"),
    (NotYetFull, "A bucket is full when each of its parameters"),
    (ReadsBeforeItWaits, "before its request's `wait` has returned"),
    (UnpacksAndThenWaits, "before its request's `wait` has returned"),
    (ForgetsWeights, "each counts the same"),
    (StartsWhatItReturns, "works in place and returns None"),
    (StartsWithComm, "works in place and returns None"),
    (InReverse, "all-reduces meet in the order of starting"),
]


@pytest.mark.parametrize("kind, hint", OVERLAPPED)
def test_a_mistake_in_overlap_meets_the_hint_that_fits(kind, hint):
    told(OverlappedGradients(kind(), 3, "experts"), hint)


RIGHT = [
    AveragedGradients([in_buckets, average], 2, "types"),
    AccumulatedGradients(right_weights, 3, "experts"),
    OverlappedGradients(Overlap(), 2, "tied"),
    OverlappedGradients(Overlap(), 3, "experts"),
]


@pytest.mark.parametrize("check", RIGHT, ids=lambda check: check.title)
def test_what_the_mistakes_are_made_from_is_right(check):
    verdict = check.judge()
    assert verdict.outcome == "pass", verdict


def test_the_order_of_a_rank_is_shown_around_its_mistake():
    found = told(OverlappedGradients(WaitsInside(), 2, "layers"), "A wait inside")
    assert (
        "Rank 0, training step 1: backward stood still to wait for bucket 0." in found
    )
    assert "8.weight · 6.bias · start 0 · [wait 0] · 6.weight" in found


def test_the_rule_of_the_exercise_is_the_rule_of_its_check():
    def compared(comm):
        from distlab.grading.gradients.trained import LIMITS, made, rows_of

        for name, limits in LIMITS.items():
            model = made(name)
            names = {p: n for n, p in model.named_parameters()}
            buckets = in_buckets(list(model.parameters()), *limits)
            ours = [[names[p] for p in bucket] for bucket in buckets]
            assert len(ours) > 2 and ours == laid_out(rows_of(model), *limits)

    run(compared, 1)
