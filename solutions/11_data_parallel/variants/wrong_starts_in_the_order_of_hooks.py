"""Starts whichever bucket is full, in an order that differs between ranks."""

from itertools import chain

POINTS = 6.0
HINT = "all-reduces meet in the order of starting"


def overlap(comm, microbatches, total, buckets, all_reduce):
    missing = dict.fromkeys(chain(*buckets), len(microbatches))
    bucket_of = {p: number for number, bucket in enumerate(buckets) for p in bucket}
    under_way = {}

    def start(number):
        buffer = pack(buckets[number])
        under_way[number] = buffer, comm.start(all_reduce, buffer)

    def arrived(p):
        missing[p] -= 1
        number = bucket_of[p]
        if not any(missing[other] for other in buckets[number]):
            start(number)

    hooks = [p.register_post_accumulate_grad_hook(arrived) for p in missing]
    for forward, count in microbatches:
        backward(comm, forward() * count * comm.world_size / total)
    for hook in hooks:
        hook.remove()
    for number in range(len(buckets)):
        if number not in under_way:
            start(number)
    for number, (buffer, request) in under_way.items():
        request.wait()
        unpack(buckets[number], buffer, comm.world_size)
