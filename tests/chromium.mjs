/*
 * Debian's Chromium for the tests that need a browser, or another one that CHROMIUM names.
 *
 * It takes playwright's `chromium`, for every folder of npm packages has a playwright of its own.
 */
import { existsSync } from 'node:fs';

const { CHROMIUM = '/usr/bin/chromium' } = process.env;

export const isThere = existsSync(CHROMIUM);
export const place = CHROMIUM;

/** Launch it; nothing of it leaves the machine by itself. */
export const launch = (chromium) =>
  chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  });
