// kinesis-mock listens on every interface and has no option for another. Loaded before it, this keeps it on loopback.
'use strict';
const net = require('net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  const options = args.find((arg) => arg !== null && typeof arg === 'object');
  if (options) {
    options.host = '127.0.0.1';
  } else if (args.length > 0) {
    const rest = args.slice(1).filter((arg) => typeof arg === 'function');
    args = [{ port: Number(args[0]), host: '127.0.0.1' }, ...rest];
  }
  return listen.apply(this, args);
};
