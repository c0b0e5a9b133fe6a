// Descriptions of standard trouble codes. The table, Vehicles/trouble-codes.txt, is parsed on first use. Descriptions that contain the
// number of a cylinder, coil or sensor are computed. Unlisted codes have no description.

extension TroubleCode {
  /// The description: "manufacturer-specific" if the code is not standardised, nil if it is unknown.
  var meaning: String? {
    if !isStandard { return "manufacturer-specific" }
    if isPadding { return nil }
    return numberedMeaning ?? Self.meanings[number]
  }

  /// The patterns of the table. An entry is a code, a pattern and a subject. It describes one code for each string of its pattern.
  private static let patterns: [String: [String]] = [
    "-": [""],
    "c5": ["circuit", "circuit range or performance", "circuit low", "circuit high", "circuit intermittent"],
    "c4": ["circuit", "circuit range or performance", "circuit low", "circuit high"],
    "c3": ["circuit", "circuit low", "circuit high"],
    "r3": ["circuit range or performance", "circuit low", "circuit high"],
    "l2": ["circuit low", "circuit high"],
    "n4": ["circuit", "circuit range or performance", "no signal", "circuit intermittent"],
    "s5": ["fault", "stuck off", "stuck on", "electrical fault", "intermittent"],
    "a5": ["control circuit", "stuck off", "stuck on", "control circuit low", "control circuit high"],
    "o3": ["circuit", "circuit open", "circuit shorted"],
    "b9": [
      "", "performance", "line + open", "line + low", "line + high", "line - open", "line - low", "line - high", "lines shorted together",
    ],
    "t2": ["too lean", "too rich"],
    "k2": ["stuck lean", "stuck rich"],
    "p2": ["stuck open", "stuck closed"],
    "f2": ["stuck on", "stuck off"],
  ]

  private static let meanings: [UInt16: String] = {
    var meanings: [UInt16: String] = [:]
    for entry in table.utf8.split(separator: lineFeed) {
      let fields = entry.split(separator: space, maxSplits: 2).map { String($0) ?? "" }
      guard fields.count == 3, let first = TroubleCode(fields[0]), let pattern = patterns[fields[1]] else { continue }
      for (offset, kind) in pattern.enumerated() {
        guard let code = first.following(offset) else { continue }
        meanings[code.number] = kind.isEmpty ? fields[2] : "\(fields[2]) \(kind)"
      }
    }
    return meanings
  }()

  /// The code with `offset` added to its last two digits, read as a decimal number; nil if they are not decimal, or the sum exceeds 99.
  private func following(_ offset: Int) -> TroubleCode? {
    if offset == 0 { return self }
    let (tens, ones) = (Int(number >> 4 & 15), Int(number & 15))
    let sum = tens * 10 + ones + offset
    guard tens < 10, ones < 10, sum < 100 else { return nil }
    return TroubleCode(number: number & 0xFF00 | UInt16((sum / 10) << 4 | sum % 10))
  }

  /// The description of a code for a cylinder, coil or sensor whose number is computed from the code; nil for any other code.
  private var numberedMeaning: String? {
    let digits = (Int(number >> 8 & 15), Int(number >> 4 & 15), Int(number & 15))
    guard number < 0x3000, digits.0 < 10, digits.1 < 10, digits.2 < 10 else { return nil }
    let decimal = Int(number >> 12) * 1000 + digits.0 * 100 + digits.1 * 10 + digits.2
    switch decimal {
    case 201...212: return "injector circuit, cylinder \(decimal - 200)"
    case 261...296:
      let kind = ["injector circuit low", "injector circuit high", "contribution or balance"][(decimal - 261) % 3]
      return "\(kind), cylinder \((decimal - 261) / 3 + 1)"
    case 301...312: return "misfire, cylinder \(decimal - 300)"
    case 351...362: return "ignition coil \(Self.letter(decimal - 351)) circuit"
    case 671...682: return "glow plug circuit, cylinder \(decimal - 670)"
    case 2300...2335:
      let kind = ["primary circuit low", "primary circuit high", "secondary circuit"][(decimal - 2300) % 3]
      return "ignition coil \(Self.letter((decimal - 2300) / 3)) \(kind)"
    case 2336...2347: return "knock above its limit, cylinder \(decimal - 2335)"
    case 130...147: return Self.sensor(decimal - 130, bank: 1)
    case 150...167: return Self.sensor(decimal - 150, bank: 2)
    default: return nil
    }
  }

  private static func letter(_ index: Int) -> String {
    String(decoding: [UInt8(ascii: "A") &+ UInt8(truncatingIfNeeded: index)], as: UTF8.self)
  }

  private static func sensor(_ offset: Int, bank: Int) -> String? {
    let kinds = ["circuit", "circuit low voltage", "circuit high voltage", "slow response", "no activity", "heater circuit"]
    return "oxygen sensor \(kinds[offset % 6]), bank \(bank) sensor \(offset / 6 + 1)"
  }
}
