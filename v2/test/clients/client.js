// A client with grpc-js, the gRPC of Node.js. It sends and receives bytes, and prints a line of JSON: how many calls
// of each phase ended with which code.
//
//   client.js calls SOCKET METHOD REQUEST CALLERS CALLS  each caller makes its calls one after the other
//   client.js cancel SOCKET METHOD REQUEST BURSTS CALLS  each call is cancelled after a random time
//   client.js loop SOCKET METHOD REQUEST CALLERS MS      until a line arrives and MS have passed; says when it is ready
//
// REQUEST is in hexadecimal. All calls are on one channel.
'use strict';
const grpc = require('@grpc/grpc-js');

const [scenario, socket, method, request, ...numbers] = process.argv.slice(2);
const [many, more] = numbers.map(Number);
const client = new grpc.Client('unix:' + socket, grpc.credentials.createInsecure());
const same = (bytes) => bytes;

// count counts how a call ended, and explains the first of its kind.
function count(counts, status) {
  const code = grpc.status[status.code];
  if (status.code !== grpc.status.OK && !counts[code]) console.error(`${scenario}: ${code}: ${status.details}`);
  counts[code] = (counts[code] ?? 0) + 1;
}

// call makes a call, and cancels it after some milliseconds if told to.
const call = (counts, cancelAfter) => new Promise((done) => {
  const running = client.makeUnaryRequest(method, same, same, Buffer.from(request, 'hex'), (error) => {
    count(counts, error ?? { code: grpc.status.OK });
    done();
  });
  if (cancelAfter !== undefined) setTimeout(() => running.cancel(), cancelAfter);
});

// repeat starts a function many times at once and waits for all.
const repeat = (n, start) => Promise.all(Array.from({ length: n }, start));

async function calls() {
  const counts = {};
  await repeat(many, async () => {
    for (let i = 0; i < more; i++) await call(counts);
  });
  return { calls: counts };
}

async function cancel() {
  const [bursts, after, watch] = [{}, {}, {}];
  const stream = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', same, same, Buffer.alloc(0));
  stream.on('status', (status) => count(watch, status)).on('error', () => {});
  await new Promise((done) => stream.on('data', done).on('status', done));
  for (let i = 0; i < many; i++) {
    const most = i < 30 ? [5, 100][i % 2] : 300; // the last bursts leave some calls time to end
    await repeat(more, () => call(bursts, most * Math.random()));
  }
  await repeat(100, () => call(after));
  return { bursts, after, watch };
}

async function loop() {
  const counts = {};
  let [stop, made] = [false, 0];
  process.stdin.once('data', () => setTimeout(() => { stop = true; }, more));
  await repeat(many, async () => {
    while (!stop) {
      await call(counts);
      if (++made === 10 * many) console.log('ready'); // other callers wait for answers
    }
  });
  return { calls: counts };
}

({ calls, cancel, loop })[scenario]().then((result) => {
  console.log(JSON.stringify(result));
  process.exit();
});
