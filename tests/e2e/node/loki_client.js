// A program that logs by winston, with its transport to Loki: run by test_loki.py. Arguments: the address of
// the server, and how many lines. Prints the bodies as they left, and the errors that it was told.
const [host, count] = process.argv.slice(-2);
const http = require('http');
const winston = require('winston');
const LokiTransport = require('winston-loki');
const bodies = [], errors = [];
const request = http.request;
http.request = (options, ...rest) => {
    const made = request(options, ...rest);
    const write = made.write;
    made.write = (data, ...more) => {
        bodies.push(data.toString());
        return write.call(made, data, ...more);
    };
    return made;
};
const transport = new LokiTransport({
    host, json: true, interval: 1, labels: {app: 'shop', host: 'web-1', env: 'stage "2"'},
    replaceTimestamp: true, onConnectionError: error => errors.push(String(error)),
});
const logger = winston.createLogger({level: 'debug', transports: [transport]});
for (let i = 0; i < Number(count); i++) {
    logger.log({level: i % 3 ? 'info' : 'warn', message: `order ${i} of größe ${'x'.repeat(i % 50)}`});
    if (i % 100 === 0)
        logger.error(new Error('no account\nfor order ' + i).stack, {trace: 't' + i});
}
transport.flush().then(() => {
    process.stdout.write(JSON.stringify({bodies, errors}), () => process.exit(0));
});
