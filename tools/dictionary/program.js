// The same with Sentry's client of node, which tests/e2e/node pins.
const Sentry = require("@sentry/node");
const fs = require("fs");

let seed = 8470;
const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
const word = () => ["order", "basket", "invoice", "customer", "parcel"][random(5)];

Sentry.init({dsn: process.env.SENTRY_DSN, release: "shop@2.1.0", environment: "production",
             sendDefaultPii: true});

class PaymentError extends Error {}

function pay(number) {
  const basket = [undefined, null, {}][random(3)];
  if (number % 3 === 0) return basket.items.length;
  if (number % 3 === 1) return JSON.parse(word());
  throw new PaymentError(`${word()} ${number} was refused`);
}

async function main() {
  for (let number = 0; number < 120; number++) {
    Sentry.setUser({id: String(random(100000)), username: word() + random(1000)});
    Sentry.setTag(word(), String(random(1000)));
    for (let crumb = random(8); crumb > 0; crumb--) {
      Sentry.addBreadcrumb({category: "fetch", type: "http", level: "info",
                            data: {method: "GET", status_code: 200,
                                   url: `https://${word()}.example/${random(1000)}`}});
    }
    try {
      if (number % 4 === 0) await fs.promises.readFile(`/var/lib/${word()}/${random(1000)}`);
      else await Promise.all([1, 2].map(async () => pay(number)));
    } catch (error) {
      Sentry.captureException(error);
    }
  }
  await Sentry.flush(60000);
}

main();
