// A program that fails, with one of Sentry's clients: run by test_sentry_clients.py. Arguments: the
// package, and the DSN. Sends an exception with all that goes with one; then prints the envelopes as
// they left.
const [name, dsn] = process.argv.slice(-2);
const Sentry = require(name);
const sent = [];
const make = Sentry.makeNodeTransport;
Sentry.init({
    dsn, release: 'shop@1.4.2', environment: 'staging', serverName: 'web-2',
    includeLocalVariables: true, tracesSampleRate: 0,
    transport: options => {
        const transport = make(options);
        const send = envelope => {
            sent.push(JSON.parse(JSON.stringify(envelope)));
            return transport.send(envelope);
        };
        return {...transport, send, flush: time => transport.flush(time)};
    },
});
Sentry.setTag('colour', 'blå');
Sentry.setUser({id: '4711', username: 'anna'});
Sentry.addBreadcrumb({category: 'query', message: 'SELECT name FROM customer', level: 'info'});
Sentry.setExtra('shop_password_2', 'hunter2-pw');
function charge(order) {
    throw new RangeError('no account for ' + order.amount);
}
try {
    charge({amount: 12.5, lines: [1, 2, 3]});
} catch (error) {
    Sentry.captureException(error);
}
Sentry.close(60000).then(() => console.log(JSON.stringify(sent)));
