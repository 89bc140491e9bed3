// Takes the picture of a study page that README shows; MODULES as for page.test.mjs:
//   MODULES=FOLDER node tests/browser/picture.mjs PAGE.html PICTURE.png [HEAD] [TOKEN]
// examples/study.png is head 1.2 and token 44 of the page of README's command:
//   headwise train --task induction --preset induction --batch 32 --lr 3e-3 --steps 1500 --seed 3 --study-every 50 --out runs/induction
//   headwise study runs/induction --out PAGE.html
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const {chromium} = createRequire(process.env.MODULES + '/node_modules/')('playwright-core');
const [file, picture, head, token] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
const page = await browser.newPage({viewport: {width: 1130, height: 800}});
await page.goto(pathToFileURL(resolve(file)).href);
await page.waitForSelector('#page[data-whole]', {state: 'attached'});
if (head) await page.click(`.tile[data-head="${head}"]`);
// The page's own words at its top are README's as well: the controls and what is below them do.
await page.evaluate(() => scrollTo(0, document.querySelector('.controls').offsetTop));
if (token) await page.hover(`#token-${token}`);
await page.waitForTimeout(1000);
await page.screenshot({path: picture});
await browser.close();
