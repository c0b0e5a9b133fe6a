// Decodes the bytes of one column; ColumnEncoder.swift describes the format.

import Protocols

extension ByteReader {
  /// Reads a column of a block: the samples at these times. `reasons` are those of the block.
  mutating func column(of series: Int, times: [Int64], reasons: [String]) throws(BlockError) -> Column {
    let code = try byte()
    guard let encoding = ColumnEncoding(rawValue: code) else { throw failure("unknown encoding \(code)") }
    let (positions, absent) = try absences(times.count, reasons)
    let values = try values(encoding, times.count - absent)
    try finish()
    return Column(series: series, times: times, values: values, positions: positions, reasons: reasons)
  }

  private mutating func absences(_ samples: Int, _ reasons: [String]) throws(BlockError) -> (positions: [Int32]?, count: Int) {
    let count = try count("absent samples", limit: samples)
    guard count > 0 else { return (nil, 0) }
    var positions: [Int32] = []
    positions.reserveCapacity(samples)
    var value: Int32 = 0
    func appendValues(_ number: Int) {
      positions.append(contentsOf: value..<value + Int32(number))
      value += Int32(number)
    }
    for _ in 0..<count {
      appendValues(try self.count("samples before an absent one", limit: samples - positions.count - 1))
      guard positions.count < samples else { throw failure("more absent samples than samples") }
      positions.append(~Int32(try index(of: reasons)))
    }
    appendValues(samples - positions.count)
    return (positions, count)
  }

  private mutating func values(_ encoding: ColumnEncoding, _ count: Int) throws(BlockError) -> Column.Values {
    switch encoding {
    case .bools: return .bools(try slice(count).map { $0 != 0 })
    case .ints: return .ints(try integers(count))
    case .decimals:
      let decimals = try decimals()
      return .floats(try differences(count) { DecimalScale.number($0, decimals) })
    case .doubles: return .floats(try doubles(count))
    case .strings:
      let dictionary = try strings("strings")
      return .strings(try array(count) { (reader) throws(BlockError) in dictionary[try reader.index(of: dictionary)] })
    case .decimalLists: return .lists(try decimalLists(count))
    case .stringLists:
      let dictionary = try strings("elements")
      return .lists(
        try array(count) { (reader) throws(BlockError) in
          try reader.array(try reader.elementCount("elements of a list")) { (reader) throws(BlockError) in
            dictionary[try reader.index(of: dictionary)]
          }
        })
    }
  }

  /// Reads elements, each of at least one byte.
  private mutating func array<Element>(
    _ count: Int, _ element: (inout ByteReader) throws(BlockError) -> Element
  ) throws(BlockError) -> [Element] {
    guard count <= remaining else { throw failure("truncated: \(count) values in \(remaining) bytes") }
    var elements: [Element] = []
    elements.reserveCapacity(count)
    for _ in 0..<count { elements.append(try element(&self)) }
    return elements
  }

  mutating func integers(_ count: Int) throws(BlockError) -> [Int64] { try differences(count) { $0 } }

  /// Reads integers, each stored as the difference from the previous one, and converts them.
  @inline(__always)
  private mutating func differences<Element>(_ count: Int, _ convert: (Int64) -> Element) throws(BlockError) -> [Element] {
    guard count <= remaining else { throw failure("truncated: \(count) numbers in \(remaining) bytes") }
    // An initializer with a capacity of 0 writes to the empty array that all threads share: 0 over 0, but a data race.
    guard count > 0 else { return [] }
    var previous: Int64 = 0
    var reader = self
    let elements = try [Element](unsafeUninitializedCapacity: count) { (output, written) throws(BlockError) in
      try reader.numbers(count) { number in
        previous &+= signedNumber(zigzag: number)
        output.initializeElement(at: written, to: convert(previous))
        written += 1
      }
    }
    self = reader
    return elements
  }

  private mutating func decimals() throws(BlockError) -> Int {
    let decimals = Int(try byte())
    guard decimals <= DecimalScale.maxDecimals else {
      throw failure("\(decimals) decimals; the maximum is \(DecimalScale.maxDecimals)")
    }
    return decimals
  }

  private mutating func doubles(_ count: Int) throws(BlockError) -> [Double] {
    // The number of values is at most that of the samples, which take at least one byte each.
    let planes = try slice(8 * count)
    var pattern: UInt64 = 0
    return (0..<count).map { index in
      pattern ^= (0..<8).reduce(0) { $0 << 8 | UInt64(planes[planes.startIndex + $1 * count + index]) }
      return Double(bitPattern: pattern)
    }
  }

  private mutating func decimalLists(_ count: Int) throws(BlockError) -> [[String]] {
    let decimals = try decimals()
    let size = try elementCount("elements of a list")
    guard size > 0, count <= remaining / size else { throw failure("truncated: \(count) lists of \(size) in \(remaining) bytes") }
    var list = [Int64](repeating: 0, count: size)
    return try array(count) { (reader) throws(BlockError) in
      for index in list.indices { list[index] &+= try reader.signed() }
      return list.map { DecimalScale.text($0, decimals) }
    }
  }

  mutating func strings(_ name: String) throws(BlockError) -> [String] {
    try array(try elementCount(name)) { (reader) throws(BlockError) in try reader.string() }
  }

  private mutating func index(of dictionary: [String]) throws(BlockError) -> Int {
    let index = try unsigned()
    guard index < UInt64(dictionary.count) else { throw failure("index \(index) in a dictionary of \(dictionary.count)") }
    return Int(index)
  }
}
