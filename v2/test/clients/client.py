# A client with grpcio, the gRPC of Python, which is that of C and C++ below. It does what client.js does.
import asyncio
import collections
import json
import random
import sys

import grpc.aio

scenario, socket, method, request = sys.argv[1:5]
many, more = map(int, sys.argv[5:7])


def count(counts, code, details):
    if code != grpc.StatusCode.OK and not counts[code.name]:
        print(f"{scenario}: {code.name}: {details}", file=sys.stderr)
    counts[code.name] += 1


async def call(channel, counts, cancel_after=None):
    running = channel.unary_unary(method)(bytes.fromhex(request))
    if cancel_after is not None:
        asyncio.get_running_loop().call_later(cancel_after, running.cancel)
    count(counts, await running.code(), await running.details())


async def repeat(n, start):
    await asyncio.gather(*(start() for _ in range(n)))


async def calls(channel):
    counts = collections.Counter()

    async def caller():
        for _ in range(more):
            await call(channel, counts)

    await repeat(many, caller)
    return {"calls": counts}


async def cancel(channel):
    bursts, after, watch = (collections.Counter() for _ in range(3))
    stream = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
    stream.add_done_callback(lambda _: watch.update(["ended"]))
    await stream.read()
    for i in range(many):
        most = (0.005, 0.1)[i % 2] if i < 30 else 0.3
        await repeat(more, lambda: call(channel, bursts, random.uniform(0, most)))
    await repeat(100, lambda: call(channel, after))
    return {"bursts": bursts, "after": after, "watch": dict(watch)}


async def loop(channel):
    counts = collections.Counter()
    stop = False

    async def caller():
        while not stop:
            await call(channel, counts)
            if counts.total() == 10 * many:
                print("ready", flush=True)

    callers = asyncio.create_task(repeat(many, caller))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await asyncio.sleep(more / 1000)
    stop = True
    await callers
    return {"calls": counts}


async def main():
    async with grpc.aio.insecure_channel("unix:" + socket) as channel:
        result = await {"calls": calls, "cancel": cancel, "loop": loop}[scenario](channel)
        print(json.dumps(result), flush=True)


asyncio.run(main())
