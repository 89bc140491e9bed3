// What a browser makes of the study page. Run by run.sh.
import assert from 'node:assert/strict';
import {createRequire} from 'node:module';
import {after, before, test} from 'node:test';
import {pathToFileURL} from 'node:url';

const {chromium} = createRequire(process.env.MODULES + '/node_modules/')('playwright-core');
let browser;
before(async () => {
  // Root may not use chromium's sandbox.
  const args = process.getuid() === 0 ? ['--no-sandbox'] : [];
  browser = await chromium.launch({executablePath: process.env.CHROMIUM, args});
});
after(() => browser?.close());

/// Opens a page without a network, runs `check`, and finds nothing on the console but lines like
/// `wanted`, each once and in this order, and nothing asked of any network.
async function withPage(name, options, check, wanted = []) {
  const url = pathToFileURL(`${process.env.PAGES}/${name}.html`).href;
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, offline: true, ...options});
  const page = await context.newPage(),
    trouble = [];
  page.on('console', (message) => {
    // Reading canvases back is this test's own doing.
    if (!message.text().startsWith('Canvas2D: Multiple readback'))
      trouble.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => trouble.push(`error: ${error.stack}`));
  page.on('dialog', (dialog) => trouble.push(`dialog: ${dialog.message()}`));
  page.on('request', (request) => {
    if (request.url() !== url && !request.url().startsWith('data:'))
      trouble.push(`request: ${request.url()}`);
  });
  await page.goto(url, {timeout: 120000});
  await page.waitForSelector('#page[data-whole]', {timeout: 120000, state: 'attached'});
  await check(page);
  await context.close();
  assert.equal(trouble.length, wanted.length, trouble.join('\n'));
  wanted.forEach((line, i) => assert.match(trouble[i], line));
}

const names = (page) => page.$$eval('.tile', (tiles) => tiles.map((tile) => tile.dataset.head));
const text = (page, selector) => page.textContent(selector);
/// Once the page has drawn what was asked of it.
const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
/// The colours of a canvas at shares of its width and height, as [r, g, b, a].
const pixels = (page, selector, places) =>
  page.$eval(
    selector,
    (canvas, at) =>
      at.map(([x, y]) => [
        ...canvas
          .getContext('2d')
          .getImageData(Math.floor(x * canvas.width), Math.floor(y * canvas.height), 1, 1).data,
      ]),
    places,
  );
const look = (page, head) => text(page, `.tile[data-head="${head}"] .look`);

// As in tests/support/study_document.hpp, by hand.
const hostile = [
  'a<b>&amp;"\'',
  '\u23CE',
  '\u21E5',
  '\u2420',
  'U+0000',
  'U+202E',
  '\u00E9',
  "</script><script>document.title='broken'</script>",
  '<img\u2420src=x\u2420onerror="document.title=\'broken\'">',
  'U+2028',
  'U+2029',
  'U+200F\u05D0',
  'U+2066',
  '\u25CC\u0301',
  '\u{1F600}',
  '<!--<script>',
  ']]>',
  '${1}`\\u0041\\',
  'U+000D\u23CE',
  'U+001B[31m',
  '__proto__',
  '\u2205',
  '\\xff',
  'U+00A0',
];

test('hostile tokens are shown literally, one element a token, and do nothing', () =>
  withPage('hostile', {}, async (page) => {
    const tokens = await page.$$eval('#tokens .token', (all) => all.map((one) => one.textContent));
    assert.deepEqual(tokens, hostile);
    assert.match(await text(page, '#token-count'), new RegExp(`^${hostile.length} tokens`));
    assert.equal(await page.title(), 'What each head does: runs/made up </script>');
    assert.equal(await page.$$eval('img, iframe, object, [onerror]', (all) => all.length), 0);
    // The document and the page's own script; the patterns are gone once they are read.
    await page.waitForFunction(() => !document.querySelector('script[id^="pattern-0-"]'));
    assert.deepEqual(await page.$$eval('script:not([id^="pattern-1-"])', (all) => all.map((one) => one.id)), [
      'document',
      '',
    ]);
    assert.equal(await page.evaluate(() => ({}).polluted), undefined);
  }));

test('signs differ from letters that spell the same, and nothing turns the direction', () =>
  withPage('hostile', {}, async (page) => {
    const signs = await page.$$eval('#tokens .token', (all) =>
      all.map((one) => one.querySelectorAll('.sign').length),
    );
    assert.deepEqual(signs.slice(0, 7), [0, 1, 1, 1, 1, 1, 0]);
    const boxes = await page.$$eval('#tokens .token', (all) =>
      all.map((one) => {
        const {left, top, width} = one.getBoundingClientRect();
        return {left, top, width};
      }),
    );
    for (let i = 1; i < boxes.length; ++i) {
      assert.ok(boxes[i].width > 0, `token ${i} has a width`);
      if (boxes[i].top === boxes[i - 1].top)
        assert.ok(boxes[i].left > boxes[i - 1].left, `token ${i} stands after ${i - 1}`);
    }
    assert.equal(await page.evaluate(() => document.characterSet), 'UTF-8');
  }));

test('the browser refuses markup from texts and any fetch', () => {
  const check = async (page) => {
    const refused = await page.evaluate(() => {
      try {
        document.createElement('div').innerHTML = '<b>x</b>';
      } catch (error) {
        return error.name;
      }
      return 'not refused';
    });
    assert.equal(refused, 'TypeError');
    const policy = await page.getAttribute('meta[http-equiv="Content-Security-Policy"]', 'content');
    assert.match(policy, /default-src 'none'/);
  };
  // The console says that the policy was kept: that one line is what is wanted here.
  return withPage('bare', {}, check, [/^console error: This document requires 'TrustedHTML' assignment\b/]);
});

test('a click enlarges a head', () =>
  withPage('small', {}, async (page) => {
    assert.equal(await text(page, '#head-title'), 'Head 1.0 induction');
    await page.click('.tile[data-head="0.1"]');
    assert.equal(await text(page, '#head-title'), 'Head 0.1 previous token');
    // A score without a p has none beside it.
    const ofHead = (row) => page.$eval(row, (cells) => [...cells.children].map((cell) => cell.textContent));
    assert.deepEqual((await ofHead('#head-section .numbers tr:has(th:text-is("entropy"))')).slice(2, 5), [
      '1.21',
      '2.50',
      '\u2013',
    ]);
    assert.match(
      await text(page, '#head-words'),
      /looks at the token just before\. Score 0\.93; by chance it would be 0\.04 \(p < 1e-6\)\..*rises by 0\.41 nats/,
    );
    assert.deepEqual(
      await page.$$eval('[aria-pressed="true"]', (all) => all.map((one) => one.dataset.head)),
      ['0.1'],
    );
    await settled(page);
    // Sixty-four cells a side behind the labels: just below the diagonal is dark, above it nothing is.
    const [below, far, above] = await page.$eval('canvas.matrix', (canvas) => {
      const scale = canvas.width / parseFloat(canvas.style.width),
        side = parseFloat(canvas.style.width);
      const margin = 30,
        cell = (side - margin) / 64;
      const at = (i, j) => [
        ...canvas
          .getContext('2d')
          .getImageData(
            Math.floor(scale * (margin + (j + 0.5) * cell)),
            Math.floor(scale * (margin + (i + 0.5) * cell)),
            1,
            1,
          ).data,
      ];
      return [at(40, 39), at(40, 10), at(10, 40)];
    });
    assert.ok(below[0] < 60, `dark at the token before: ${below}`);
    assert.ok(far[0] > 200 && above[0] > 200, `light elsewhere: ${far}, ${above}`);
  }));

test('pointing at a token shows what it attends to in every head', () =>
  withPage('small', {}, async (page) => {
    await page.hover('#token-10');
    await settled(page);
    assert.equal(await look(page, '0.1'), 'a 77%, 1 back');
    assert.equal(await look(page, '0.2'), 'T 77%, 10 back');
    assert.equal(await look(page, '0.0'), 'T 9%, 10 back');
    assert.match(await text(page, '#read'), /^token 10 w attends most to /);
    await page.click('.tile[data-head="0.1"]');
    await page.hover('#token-10');
    await settled(page);
    const shades = await page.$$eval('#tokens .token', (all) =>
      all.map((one) => parseInt(one.dataset.shade, 10)),
    );
    assert.equal(shades.indexOf(Math.max(...shades)), 9);
    assert.deepEqual(
      shades.slice(11),
      shades.slice(11).map(() => 0),
    ); // what comes later is not seen
    await page.mouse.move(2, 2);
    await settled(page);
    assert.match(await text(page, '#read'), /^token 63 /); // what is pinned comes back
  }));

test('heads are filtered by role and sorted', () =>
  withPage('small', {}, async (page) => {
    assert.deepEqual(await names(page), ['0.0', '0.1', '0.2', '0.3', '1.0', '1.1', '1.2', '1.3']);
    await page.selectOption('#role', 'prefix_matching');
    assert.deepEqual(await names(page), ['1.0', '1.1']);
    assert.equal(await page.$$eval('#scores tbody tr', (rows) => rows.length), 2);
    assert.equal(await page.$$eval('#ablation tbody tr', (rows) => rows.length), 2);
    await page.selectOption('#role', 'none');
    assert.deepEqual(await names(page), ['0.0', '0.3', '1.2', '1.3']);
    await page.selectOption('#role', '');
    await page.selectOption('#sort', 'score:previous_token');
    assert.deepEqual((await names(page)).slice(0, 2), ['0.1', '1.3']);
    await page.selectOption('#sort', 'role');
    assert.deepEqual((await names(page)).slice(0, 4), ['0.1', '0.2', '1.0', '1.1']);
    await page.click('#scores thead button:text-is("induction")');
    assert.deepEqual((await names(page)).slice(0, 2), ['1.0', '1.1']);
    assert.equal(await page.inputValue('#sort'), 'score:prefix_matching');
  }));

test('every score stands beside its chance level, every ablation beside the score', () =>
  withPage('small', {}, async (page) => {
    const [values, chances] = await page.$eval('#scores', (table) => [
      table.querySelectorAll('.value').length,
      table.querySelectorAll('.chance').length,
    ]);
    assert.equal(values, 8 * 5);
    assert.equal(chances, values);
    assert.match(await text(page, '#scores-section'), /p is never less than what a permutation test would give/);
    const bold = await page.$$eval('#scores tbody tr', (rows) =>
      rows.map((row) => row.dataset.head + ':' + row.querySelectorAll('b').length),
    );
    assert.deepEqual(bold, ['0.0:0', '0.1:1', '0.2:1', '0.3:0', '1.0:1', '1.1:1', '1.2:0', '1.3:0']);
    assert.deepEqual(
      await page.$$eval('#ablation tbody tr:nth-child(2) > *', (cells) =>
        cells.map((cell) => cell.textContent),
      ),
      ['0.1', 'previous token', '0.93', '0.04', '+0.410 \u00b10.012', '+0.328', '+0.369', '+0.410'],
    );
    assert.equal(await page.$$eval('#ablation .bar .error', (all) => all.length), 8); // of one way
    assert.match(await text(page, '#ablation-section'), /Ablated on 16 sequences of 64 tokens/);
    assert.match(
      await text(page, '#groups-section'),
      /1\.0 and 1\.1 together raises the loss by 1\.200 .* 0\.220 in all\. Redundant/,
    );
  }));

test('lines join each token with what it looks at', () =>
  withPage('small', {}, async (page) => {
    await page.click('input[value="lines"]');
    assert.equal(await page.$$eval('.side.from li', (all) => all.length), 64);
    assert.equal(await page.$$eval('.side.to li', (all) => all.length), 64);
    const inked = () =>
      page.$$eval('.between canvas', (all) =>
        all.map((canvas) =>
          canvas
            .getContext('2d')
            .getImageData(0, 0, canvas.width, canvas.height)
            .data.some((value) => value > 0),
        ),
      );
    assert.deepEqual(await inked(), [true, true]);
    await page.hover('.side.to li:nth-child(6)');
    await settled(page);
    const lookers = await page.$$eval(
      '.side.from .token',
      (all) => all.filter((one) => parseInt(one.dataset.shade, 10) > 0).length,
    );
    assert.equal(lookers, 59); // tokens 5 to 63 can see token 5
  }));

test('the page can be used with the keyboard alone', () =>
  withPage('small', {}, async (page) => {
    await page.focus('#tokens');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowRight');
    await settled(page);
    assert.match(await text(page, '#read'), /^token 1 h attends/);
    assert.equal(await page.getAttribute('#tokens', 'aria-activedescendant'), 'token-1');
    await page.keyboard.press('Escape');
    await settled(page);
    assert.equal(await text(page, '#read'), 'Point at a token.');
    await page.focus('.tile[tabindex="0"]');
    await page.keyboard.press('ArrowUp');
    assert.equal(await text(page, '#head-title'), 'Head 0.0');
    assert.match(await text(page, '#head-words'), /^No role: .* above what chance and position give\./);
    await page.keyboard.press('ArrowRight');
    assert.equal(await text(page, '#head-title'), 'Head 0.1 previous token');
    await page.focus('canvas.matrix');
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await settled(page);
    assert.match(await text(page, '#read'), /^token 63 d attends to token 62 n: 0\.754/);
    // Tab stops are few: one for all tokens and one for all heads.
    assert.equal(await page.$$eval('.tile[tabindex="0"]', (all) => all.length), 1);
  }));

test('attention can be weighted by the norm of what is read', () =>
  withPage('small', {}, async (page) => {
    await page.click('.tile[data-head="0.2"]');
    await page.hover('#token-10');
    await settled(page);
    assert.equal(await look(page, '0.2'), 'T 77%, 10 back');
    await page.check('#normed');
    await page.hover('#token-10');
    await settled(page);
    assert.equal(await look(page, '0.2'), 'T 0.04, 10 back'); // 0.77 * 0.05: it is read, but says little
    const faint = parseInt(await page.getAttribute('#token-0', 'data-shade'), 10);
    assert.ok(faint < 50, `the first token is shaded ${faint} of 255`);
  }));

test('each part of the document has its picture', () =>
  withPage('small', {}, async (page) => {
    // What is out of sight is drawn when it comes into it.
    for (const id of ['timeline', 'pruning']) {
      await page.locator(`#${id}-section`).scrollIntoViewIfNeeded();
      await page.waitForSelector(`#${id}-section svg`);
    }
    assert.equal(await page.$$eval('#timeline-section .panel', (all) => all.length), 2);
    assert.equal(await page.$$eval('#timeline-section path.curve', (all) => all.length), 2 + 8);
    await page.locator('#timeline-score').scrollIntoViewIfNeeded();
    await page.selectOption('#timeline-score', 'previous_token');
    await settled(page);
    assert.match(await text(page, '#timeline-section .read'), /^step 2000: loss 1\.600.*; 0\.1 0\.93/);
    assert.equal(await page.$$eval('#pruning-section path.curve', (all) => all.length), 2);
    assert.equal(await page.$$eval('#composition-section canvas', (all) => all.length), 3);
    assert.match(
      await text(page, '#composition-section'),
      /Strongest: 0\.1 \u2192 1\.0 K \+0\.29, 0\.1 \u2192 1\.1 K \+0\.29/,
    );
    assert.equal(await page.$$eval('#lens tbody tr', (all) => all.length), 64);
    await page.hover('#token-3');
    await settled(page);
    assert.match(await text(page, '#attribution-bars'), /^After token 3 \u2420 comes c; its logit is /);
    for (const id of ['attribution', 'composition', 'patching']) {
      const [inside] = await pixels(page, `#${id}-section canvas`, [[0.5, 0.8]]);
      assert.equal(inside[3], 255, `${id} is drawn`);
    }
  }));

test('another text brings its own tokens and patterns', () =>
  withPage('hostile', {}, async (page) => {
    await page.selectOption('#text', '1');
    await settled(page);
    assert.equal(await page.$$eval('#tokens .token', (all) => all.length), 40);
    assert.match(await look(page, '0.1'), /, 1 back$/);
    assert.match(await text(page, '#read'), /^token 139 /); // it begins at token 100 of its text
    assert.match(await text(page, '#token-count'), /^40 tokens.* from token 100 on/);
    assert.match(await text(page, '#attribution-section'), /Not computed for this text/);
  }));

test('a document with texts and heads alone has a page', () =>
  withPage('bare', {}, async (page) => {
    assert.deepEqual(await names(page), ['0.0', '0.1', '1.0', '1.1']);
    assert.deepEqual(await page.$$eval('section', (all) => all.map((one) => one.id)), [
      'text-section',
      'grid-section',
      'head-section',
    ]);
    await page.click('.tile[data-head="1.1"]');
    assert.match(await text(page, '#head-section'), /pattern of this head is not in this page/);
  }));

test('light and dark can both be read, and narrow windows too', async () => {
  for (const colorScheme of ['light', 'dark'])
    await withPage('small', {colorScheme, viewport: {width: 360, height: 700}}, async (page) => {
      const worst = await page.evaluate(() => {
        const light = (colour) => {
          const [r, g, b] = colour
            .match(/[\d.]+/g)
            .map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const behind = (element) => {
          for (let at = element; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (!/, 0\)$/.test(colour)) return colour;
          }
          return 'rgb(255, 255, 255)';
        };
        let least = {ratio: 99};
        for (const element of document.querySelectorAll(
          'h1, h2, p, th, td, label, .look, .label, .token, .sign, .chance',
        )) {
          const [a, b] = [getComputedStyle(element).color, behind(element)].map(light).sort((x, y) => y - x),
            ratio = (a + 0.05) / (b + 0.05);
          if (ratio < least.ratio) least = {ratio, element: element.outerHTML.slice(0, 200)};
        }
        return least;
      });
      assert.ok(worst.ratio >= 4.5, `${colorScheme}: contrast ${worst.ratio} of ${worst.element}`);
      assert.ok(
        (await page.evaluate(() => document.documentElement.scrollWidth)) <= 360,
        'the page itself does not scroll sideways',
      );
    });
});

test('numbers have points whatever the language', () =>
  withPage('small', {locale: 'de-DE'}, async (page) => {
    assert.doesNotMatch(await page.innerText('#page'), /\d,\d/);
  }));

test('36 heads over 256 tokens answer at once; 144 over 512 leave no tile blank', async () => {
  for (const name of ['middle', 'large'])
    await withPage(name, {}, async (page) => {
      // Blank canvases keep the size they are born with.
      await page.waitForFunction(
        () => [...document.querySelectorAll('.tile .map')].every((map) => map.width !== 300),
        null,
        {timeout: 60000},
      );
      const heads = await names(page);
      assert.equal(heads.length, name === 'middle' ? 36 : 144);
      const blank = await page.$$eval(
        '.tile .map',
        (all) =>
          all.filter(
            (map) =>
              !map
                .getContext('2d')
                .getImageData(0, 0, map.width, map.height)
                .data.some((value) => value > 0),
          ).length,
      );
      assert.equal(blank, 0);
      await page.hover('#token-70');
      await settled(page);
      assert.match(await look(page, '0.1'), /, 1 back$/);
    });
});
