// What stands in a parsed message: strings with their escapes, numbers in the type that is asked for, members by key.

extension JSONDocument {
  /// The bytes of a node.
  func slice(_ index: Int) -> ArraySlice<UInt8> { bytes[nodes[index].start..<nodes[index].end] }

  /// The text of a string or key. Fails for wrong escapes, lone surrogates and what is no UTF-8.
  func text(_ index: Int) throws(JSONSyntax) -> String {
    guard nodes[index].kind == .coded else { return String(decoding: slice(index), as: UTF8.self) }
    let raw = slice(index)
    var plain: [UInt8] = []
    plain.reserveCapacity(raw.count)
    var at = raw.startIndex
    while at < raw.endIndex {
      guard raw[at] == UInt8(ascii: "\\") else {
        plain.append(raw[at])
        at += 1
        continue
      }
      guard at + 1 < raw.endIndex else { throw JSONSyntax(words: "an escape without an end") }
      at += 2
      switch raw[at - 1] {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): plain.append(raw[at - 1])
      case UInt8(ascii: "b"): plain.append(8)
      case UInt8(ascii: "f"): plain.append(12)
      case UInt8(ascii: "n"): plain.append(10)
      case UInt8(ascii: "r"): plain.append(13)
      case UInt8(ascii: "t"): plain.append(9)
      case UInt8(ascii: "u"): plain.append(contentsOf: String(try scalar(raw, &at)).utf8)
      default: throw JSONSyntax(words: "an unknown escape")
      }
    }
    guard let text = String(validating: plain, as: UTF8.self) else { throw JSONSyntax(words: "a string that is not UTF-8") }
    return text
  }

  /// Four hex digits, or twice four for what lies beyond them.
  private func scalar(_ raw: ArraySlice<UInt8>, _ at: inout Int) throws(JSONSyntax) -> Unicode.Scalar {
    let high = try unit(raw, &at)
    if let scalar = Unicode.Scalar(high) { return scalar }
    guard high < 0xdc00, raw[at...].starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "u")]) else {
      throw JSONSyntax(words: "half a character")
    }
    at += 2
    let low = try unit(raw, &at)
    guard 0xdc00..<0xe000 ~= low, let scalar = Unicode.Scalar(0x10000 + (high - 0xd800) << 10 + (low - 0xdc00)) else {
      throw JSONSyntax(words: "half a character")
    }
    return scalar
  }

  private func unit(_ raw: ArraySlice<UInt8>, _ at: inout Int) throws(JSONSyntax) -> UInt32 {
    var unit: UInt32 = 0
    guard raw.endIndex - at >= 4 else { throw JSONSyntax(words: "an escape without an end") }
    for byte in raw[at..<at + 4] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw JSONSyntax(words: "an unknown escape") }
      unit = unit << 4 | UInt32(digit)
    }
    at += 4
    return unit
  }

  /// A whole number, also one written as `70.0`, where it fits.
  func whole(_ index: Int) -> Int? {
    let node = nodes[index]
    if node.kind == .number { return float(index).flatMap(Int.init(exactly:)) }
    guard node.kind == .whole else { return nil }
    let negative = bytes[node.start] == UInt8(ascii: "-")
    var number = 0
    for byte in bytes[(negative ? node.start + 1 : node.start)..<node.end] {
      let (product, overflow) = number.multipliedReportingOverflow(by: 10)
      let digit = Int(byte &- UInt8(ascii: "0"))
      let (sum, overflowed) = negative ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
      guard !overflow, !overflowed else { return nil }
      number = sum
    }
    return number
  }

  /// A finite number.
  func float(_ index: Int) -> Double? {
    guard nodes[index].kind == .whole || nodes[index].kind == .number else { return nil }
    return Double(String(decoding: slice(index), as: UTF8.self)).flatMap(\.finite)
  }

  /// The value of a key in an object.
  func member(_ key: String, of object: Int) -> Int? {
    let size = key.utf8.count
    var index = object + 1
    while index < nodes[object].after {
      let found =
        nodes[index].kind == .plain
        ? size == nodes[index].end - nodes[index].start && key.utf8.elementsEqual(slice(index)) : (try? text(index)) == key
      if found { return index + 1 }
      index = nodes[index + 1].after
    }
    return nil
  }

  /// The members of an object, in their order.
  func members(of object: Int) -> [(key: String, value: Int)] {
    var members: [(key: String, value: Int)] = []
    var index = object + 1
    while index < nodes[object].after {
      if let key = try? text(index) { members.append((key, index + 1)) }
      index = nodes[index + 1].after
    }
    return members
  }

  /// The members by key, in an object of many.
  func places(in object: Int) -> [String: Int]? {
    guard nodes[object].after - object > Self.many else { return nil }
    return Dictionary(members(of: object).map { ($0.key, $0.value) }) { first, _ in first }
  }

  /// Nodes in an object from which on looking through all of them for each key is not worth it.
  private static let many = 64

  /// A key that stands in an object twice. Few keys are compared with each other, many go through a set.
  func repeatedKey(in object: Int) -> String? {
    let end = nodes[object].after
    guard end - object <= Self.many else {
      var seen: Set<String> = []
      return members(of: object).first { !seen.insert($0.key).inserted }?.key
    }
    var index = object + 1
    while index < end {
      var other = nodes[index + 1].after
      while other < end {
        if sameText(index, other) { return (try? text(index)) ?? "" }
        other = nodes[other + 1].after
      }
      index = nodes[index + 1].after
    }
    return nil
  }

  private func sameText(_ one: Int, _ other: Int) -> Bool {
    if nodes[one].kind == .plain, nodes[other].kind == .plain { return slice(one) == slice(other) }
    return (try? text(one)) == (try? text(other))
  }
}
