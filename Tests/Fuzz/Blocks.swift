// Fuzzes the blocks of the history and the batches of a fleet: raw bytes, parts behind correct checksums, and samples. A block that can be
// read has ascending times, and survives being written again; errors name the place; samples are read as they were written. Built together
// with Sources/Protocols and Sources/SampleBlocks as one module, outside the package.

private func check(_ error: BlockError) {
  require(error.description.utf8.count <= 200, "the error is too long: \(error.description)")
  require(error.description.unicodeScalars.allSatisfy { $0.value >= 0x20 }, "the error has a control character")
}

/// Requires that the columns are in order, and returns their samples by series.
private func check(_ columns: [Column]) -> [(series: Int, samples: [Sample])] {
  for (column, next) in zip(columns, columns.dropFirst()) { require(column.series < next.series, "series are not in ascending order") }
  for column in columns {
    require(zip(column.times, column.times.dropFirst()).allSatisfy(<), "the times of series \(column.series) do not ascend")
    require(column.numbers.map { $0.count == column.count } ?? true, "series \(column.series) has a wrong number of numbers")
  }
  return columns.map { ($0.series, $0.samples) }
}

private func isSame(_ one: [(series: Int, samples: [Sample])], _ other: [(series: Int, samples: [Sample])]) -> Bool {
  one.elementsEqual(other) { $0.series == $1.series && $0.samples.elementsEqual($1.samples, by: isSame) }
}

/// NaN is the same as itself.
private func isSame(_ one: Sample, _ other: Sample) -> Bool {
  if case (.value(.float(let number)), .value(.float(let same))) = (one.content, other.content) {
    return one.time == other.time && (number == same || number.isNaN && same.isNaN)
  }
  return one == other
}

private func checkBlock(_ bytes: [UInt8]) {
  do throws(BlockError) {
    let block = try Block(bytes)
    require(block.start <= block.end && block.rows <= BlockLimits.rows, "an impossible head")
    let columns = try block.columns()
    let samples = check(columns)
    var builder = BlockBuilder()
    for column in columns { try builder.append(column) }
    let copy = check(try Block(builder.build(from: block.start, to: block.end, layout: .columns)).columns())
    require(isSame(copy, samples.filter { !$0.samples.isEmpty }), "a block changes when it is written again")
    for column in columns.prefix(2) {
      require(isSame(check([try block.column(column.series)].compactMap(\.self)), [(column.series, column.samples)]), "a column differs")
    }
  } catch {
    check(error)
  }
}

private func checkBatch(_ bytes: [UInt8]) {
  do throws(BlockError) { _ = check(try Batch.decode(bytes).block.columns()) } catch { check(error) }
  var batch = ByteWriter(bytes: Batch.magic)
  batch.append(fixed: crc32c(bytes[...]))
  do throws(BlockError) { _ = check(try Batch.decode(batch.bytes + bytes).block.columns()) } catch { check(error) }
}

/// The input as the parts of a block, which are not compressed: two bytes with the layout, the numbers of rows, row sets and columns, then
/// each part after its length. Checksums and lengths are correct.
private func checkParts(_ bytes: [UInt8]) {
  guard bytes.count > 2 else { return }
  let (sets, columns) = (Int(bytes[1] & 3), Int(bytes[1] >> 2 & 3))
  let layout = BlockBuilder.Layout(rawValue: bytes[1] >> 7) ?? .whole
  var rest = bytes[2...]
  var head = ByteWriter(bytes: [layout.rawValue])
  for number in [0, 1000, Int(bytes[0]), sets, columns] { head.append(number) }
  for _ in 0..<columns {
    head.append(Int(rest.first ?? 0) & 15)
    head.append(Int(rest.popFirst() ?? 0) >> 4)
  }
  var parts: [[UInt8]] = []
  for index in 0..<2 + sets + columns {
    let part = rest.dropFirst().prefix(index == 1 + sets + columns ? rest.count : Int(rest.first ?? 0))
    rest = rest.dropFirst(1 + part.count)
    parts.append(Array(part))
  }
  if layout == .whole {
    var all = ByteWriter()
    for part in parts { all.append(part.count) }
    parts = [all.bytes + parts.joined()]
  }
  for part in parts {
    for _ in 0..<2 { head.append(part.count) }
    head.append(fixed: crc32c(part[...]))
  }
  var block = ByteWriter(bytes: Block.magic)
  block.append(head.bytes.count)
  block.bytes.append(contentsOf: head.bytes)
  block.append(fixed: crc32c(block.bytes[...]))
  checkBlock(block.bytes + parts.joined())
}

/// The input as samples: a byte with type and series, one with the time since the previous one, then the value.
private func checkSamples(_ bytes: [UInt8], _ layout: BlockBuilder.Layout) {
  var builder = BlockBuilder()
  var (expected, types): ([Int: [Int64: Sample]], [Int: ValueType]) = ([:], [:])
  var (rest, time) = (bytes[...], Int64(0))
  let number = { rest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
  let text = { String(decoding: rest.prefix(while: { $0 != 0 }).prefix(20), as: UTF8.self) }
  while let first = rest.popFirst(), let step = rest.popFirst() {
    // Up to a second before the previous sample.
    time += Int64(Int8(bitPattern: step)) * (step & 1 == 0 ? 1 : 10_000)
    let series = Int(first >> 4)
    let content: Reading.Content =
      switch first & 7 {
      case 0, 1: .absent(text())
      case 2: .value(.bool(rest.first == 1))
      case 3: .value(.int(Int(Int64(bitPattern: number()))))
      case 4: .value(.float(Double(Int(rest.first ?? 0)) / 10))
      case 5: .value(.float(Double(bitPattern: number())))
      case 6: .value(.string(text()))
      default: .value(.list(text().split(separator: ",", omittingEmptySubsequences: false).map(String.init)))
      }
    rest = rest.dropFirst(first & 8 == 0 ? 1 : 8)
    let sample = Sample(time: time, content: content)
    do throws(BlockError) {
      try builder.append(content, series: series, at: time)
      expected[series, default: [:]][time] = sample
      if case .value(let value) = content { types[series] = value.type }
    } catch {
      guard case .value(let value) = content, let type = types[series], type != value.type else { fatalError("\(error)") }
    }
  }
  let samples = expected.sorted { $0.key < $1.key }.map { (series: $0.key, samples: $0.value.values.sorted { $0.time < $1.time }) }
  do throws(BlockError) {
    let built = builder.build(from: 0, to: time, layout: layout, effort: .fast)
    let found = check(try Block(built).columns())
    require(isSame(found, samples), "samples are read as \(found) instead of \(samples)")
    let batch = try Batch.decode(Batch.encode(header: bytes, block: built))
    let columns = try batch.block.columns()
    require(batch.header == bytes && isSame(check(columns), samples), "a batch differs")
  } catch {
    fatalError("\(error)")
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = input.first else { return 0 }
  let body = Array(input.dropFirst())
  switch first & 7 {
  case 0: checkBlock(body)
  case 1: checkBatch(body)
  case 2, 3, 4: checkParts(body)
  default: checkSamples(body, first & 8 == 0 ? .whole : .columns)
  }
  return 0
}
