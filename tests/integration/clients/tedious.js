// Drives the sandbox with npm's tedious: login, SET options, create, bulk load, read back, calls, transactions, cancel.
// Arguments: port, user, password, database, encrypt (true|false). Prints one line a check; exit code 1 on the first failure.
'use strict';
const assert = require('node:assert');
const { Connection, Request, TYPES, ISOLATION_LEVEL } = require('tedious');

const [port, user, password, database, encrypt] = process.argv.slice(2);

function connect(extra = {}) {
  return new Promise((resolve, reject) => {
    const connection = new Connection({
      server: '127.0.0.1',
      authentication: { type: 'default', options: { userName: user, password: extra.password ?? password } },
      options: {
        port: Number(port), database: extra.database ?? database, encrypt: encrypt === 'true', trustServerCertificate: true,
        packetSize: extra.packetSize ?? 4096, requestTimeout: 20000, connectTimeout: 10000, useUTC: true,
      },
    });
    connection.on('error', () => {});
    connection.connect((error) => (error ? reject(error) : resolve(connection)));
  });
}

function query(connection, sql, parameters = [], how = 'execSql') {
  return new Promise((resolve, reject) => {
    const rows = [];
    const returned = {};
    const request = new Request(sql, (error, count) => (error ? reject(error) : resolve({ rows, count, returned })));
    for (const [name, type, value, options, output] of parameters) {
      if (output) request.addOutputParameter(name, type, value, options);
      else request.addParameter(name, type, value, options);
    }
    request.on('row', (columns) => rows.push(columns.map((column) => column.value)));
    request.on('returnValue', (name, value) => { returned[name] = value; });
    connection[how](request);
  });
}
const batch = (connection, sql) => query(connection, sql, [], 'execSqlBatch');
const transaction = (connection, verb, ...rest) => new Promise((resolve, reject) => {
  connection[verb]((error) => (error ? reject(error) : resolve()), ...rest);
});

const long = 'grüße 😀 '.repeat(2000);
const blob = Buffer.alloc(70000, 0xab);
const loaded = [
  [1, 'plain', '12.50', 1.5, 9007199254740991n, true, new Date(Date.UTC(2024, 1, 29, 12, 34, 56, 789)), long, blob,
    '00112233-4455-6677-8899-AABBCCDDEEFF', new Date(Date.UTC(2000, 0, 1)), 'é'],
  [2, null, null, null, null, null, null, null, null, null, null, null],
  [3, '', '-99999999.99', -0.25, -9007199254740991n, false, new Date(Date.UTC(1900, 0, 1)), '', Buffer.alloc(0),
    'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF', new Date(Date.UTC(9999, 11, 31)), ''],
];

function bulk(connection, table, rows, options = {}) {
  return new Promise((resolve, reject) => {
    const load = connection.newBulkLoad(table, options, (error, count) => (error ? reject(error) : resolve(count)));
    load.addColumn('id', TYPES.Int, { nullable: false });
    load.addColumn('nv', TYPES.NVarChar, { length: 50, nullable: true });
    load.addColumn('de', TYPES.Decimal, { precision: 10, scale: 2, nullable: true });
    load.addColumn('fl', TYPES.Float, { nullable: true });
    load.addColumn('bi', TYPES.BigInt, { nullable: true });
    load.addColumn('bt', TYPES.Bit, { nullable: true });
    load.addColumn('d2', TYPES.DateTime2, { scale: 3, nullable: true });
    load.addColumn('nm', TYPES.NVarChar, { length: Infinity, nullable: true });
    load.addColumn('vb', TYPES.VarBinary, { length: Infinity, nullable: true });
    load.addColumn('ui', TYPES.UniqueIdentifier, { nullable: true });
    load.addColumn('da', TYPES.Date, { nullable: true });
    load.addColumn('vc', TYPES.VarChar, { length: 20, nullable: true });
    connection.execBulkLoad(load, rows);
  });
}

const shown = (value) => {
  if (value instanceof Date) return value.toISOString();
  if (Buffer.isBuffer(value)) return `0x${value.toString('hex')}`;
  if (typeof value === 'bigint') return value.toString();
  return value;
};

async function fails(promise, number) {
  try {
    await promise;
  } catch (error) {
    const all = error.errors ?? [error];
    assert.ok(all.some((one) => one.number === number), `expected error ${number}, got ${all.map((e) => `${e.number} ${e.message}`)}`);
    return;
  }
  assert.fail(`expected error ${number}`);
}

const checks = {
  async 'a query and its types'(c) {
    const { rows } = await batch(c, "select 1 as a, N'x' as b, cast(null as int) as c");
    assert.deepStrictEqual(rows, [[1, 'x', null]]);
  },
  async 'bulk load and read back'(c) {
    await batch(c, 'drop table if exists dbo.t; create table dbo.t (id int not null, nv nvarchar(50), de decimal(10,2), fl float, '
      + 'bi bigint, bt bit, d2 datetime2(3), nm nvarchar(max), vb varbinary(max), ui uniqueidentifier, da date, vc varchar(20))');
    const count = await bulk(c, 'dbo.t', loaded, { keepNulls: true });
    assert.strictEqual(count, loaded.length);
    const { rows } = await batch(c, 'select id, nv, de, fl, bi, bt, d2, nm, vb, ui, da, vc from dbo.t order by id');
    const expected = loaded.map((row) => row.map(shown));
    for (const row of expected) if (row[2] !== null) row[2] = Number(row[2]);
    assert.deepStrictEqual(rows.map((row) => row.map(shown)), expected);
  },
  async 'a bulk load of many rows'(c) {
    const many = Array.from({ length: 5000 }, (_, i) => [i + 10, `row ${i}`, null, i / 4, null, i % 2 === 0, null, null, null, null, null, 'v']);
    assert.strictEqual(await bulk(c, 'dbo.t', many), many.length);
    const { rows } = await batch(c, 'select count(*), min(id), max(id) from dbo.t');
    assert.deepStrictEqual(rows, [[5003, 1, 5009]]);
  },
  async 'a refused bulk load leaves nothing behind'(c) {
    await batch(c, 'drop table if exists dbo.k; create table dbo.k (id int not null primary key)');
    const load = (rows) => new Promise((resolve, reject) => {
      const one = c.newBulkLoad('dbo.k', (error, count) => (error ? reject(error) : resolve(count)));
      one.addColumn('id', TYPES.Int, { nullable: false });
      c.execBulkLoad(one, rows);
    });
    await fails(load([[1], [2], [1]]), 2627);
    const { rows } = await batch(c, 'select count(*) from dbo.k');
    assert.deepStrictEqual(rows, [[0]]);
    assert.strictEqual(await load([[1], [2]]), 2);
  },
  async 'parameters'(c) {
    const { rows } = await query(c, 'select @a as a, @b as b, @c as c', [
      ['a', TYPES.Int, 42], ['b', TYPES.NVarChar, 'naïve ☃'], ['c', TYPES.VarBinary, Buffer.from('cafe', 'hex')]]);
    assert.deepStrictEqual(rows.map((row) => row.map(shown)), [[42, 'naïve ☃', '0xcafe']]);
    const { rows: found } = await query(c, 'select nv from dbo.t where id = @id', [['id', TYPES.Int, 1]]);
    assert.deepStrictEqual(found, [['plain']]);
  },
  async 'transactions'(c) {
    await batch(c, 'drop table if exists dbo.x; create table dbo.x (id int)');
    await transaction(c, 'beginTransaction', '', ISOLATION_LEVEL.READ_COMMITTED);
    await batch(c, 'insert into dbo.x values (1)');
    await transaction(c, 'rollbackTransaction');
    assert.deepStrictEqual((await batch(c, 'select count(*) from dbo.x')).rows, [[0]]);
    await transaction(c, 'beginTransaction');
    await batch(c, 'insert into dbo.x values (2)');
    await transaction(c, 'commitTransaction');
    assert.deepStrictEqual((await batch(c, 'select id from dbo.x')).rows, [[2]]);
  },
  async 'errors carry their number and do not end the connection'(c) {
    await fails(batch(c, 'select * from dbo.missing'), 208);
    assert.deepStrictEqual((await batch(c, 'select 3')).rows, [[3]]);
  },
  async 'a request is cancelled'(c) {
    const request = new Request("waitfor delay '00:00:20'; select 1", () => {});
    const ended = new Promise((resolve) => { request.callback = resolve; });
    const started = Date.now();
    c.execSqlBatch(request);
    setTimeout(() => c.cancel(), 200);
    const error = await ended;
    assert.strictEqual(error && error.code, 'ECANCEL');
    assert.ok(Date.now() - started < 10000, 'the cancel must not wait for the delay');
    assert.deepStrictEqual((await batch(c, 'select 4')).rows, [[4]]);
  },
  async 'a reset connection works'(c) {
    await new Promise((resolve, reject) => c.reset((error) => (error ? reject(error) : resolve())));
    assert.deepStrictEqual((await batch(c, 'select 5')).rows, [[5]]);
  },
  async 'small and large packets'() {
    for (const packetSize of [512, 16384, 32767]) {
      const c = await connect({ packetSize });
      const { rows } = await batch(c, 'select nm, vb from dbo.t where id = 1');
      assert.strictEqual(rows[0][0], long);
      assert.ok(rows[0][1].equals(blob));
      await batch(c, `declare @x nvarchar(max); set @x = N'${'y'.repeat(40000)}'; select 1`);
      c.close();
    }
  },
  async 'wrong password and unknown database are refused'() {
    await assert.rejects(connect({ password: 'wrong' }), /Login failed for user/);
    await assert.rejects(connect({ database: 'nowhere' }), /Cannot open database|Login failed/);
  },
};

(async () => {
  const connection = await connect();
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check(connection);
      console.log(`ok tedious: ${name}`);
    } catch (error) {
      console.log(`FAILED tedious: ${name}: ${error.stack}`);
      process.exit(1);
    }
  }
  connection.close();
})().catch((error) => {
  console.log(`FAILED tedious: ${error.stack}`);
  process.exit(1);
});
