// Replies of real cars, as adapters print them: one line per carriage return, `>` at the end, each with its source.

enum Vector {
  /// Kona 2023, driving, H1 S0 (OBDb/Hyundai-Kona-Electric).
  static let kona = reply(
    "7EC103E620101FFF7E7", "7EC21FF820000000003", "7EC2200780EA8151515", "7EC23151515000015BF", "7EC240BBF4100008A00",
    "7EC2501A09F00019C65", "7EC26000097E6000093", "7EC276B011C17660D01", "7EC2876033803380BB8")
  /// EV6 with one motor, cold, H1 S0 (OBDb/Kia-EV6).
  static let ev6 = reply(
    "7EC103E620101EFFBE7", "7EC21EF6F0000000000", "7EC2200071BF501FF00", "7EC23010001000024BA", "7EC2413BA7100008000",
    "7EC25013C0D0001374A", "7EC260000EC0D0000E4", "7EC2765010080770002", "7EC28CD110B00000684")
  /// EV6 long range 2022 on a 1.3 kW wallbox, H1 S0 (a public test fixture).
  static let wallbox = reply(
    "7EC103E620101EFFBE7", "7EC21EF6B2040017200", "7EC22FFF21C16201E20", "7EC23201F1E20004BBB", "7EC240DBB3D00008D00",
    "7EC2500D09F0000D37D", "7EC2600009CDF00009B", "7EC274400895F240002", "7EC28CD000000000BB8")
  /// The same car's record 05: the last frame ends in padding.
  static let wallboxRecord05 = reply(
    "7EC102E620105FFFB74", "7EC210F012C01012C1F", "7EC22201F1F1F1F1E6C", "7EC23346C3400006422", "7EC240003E805480200",
    "7EC256A000000000000", "7EC26001F1E1F20AAAA")
  /// Soul EV 30 kWh, 2101, H1 S1 (EVRanger SoulEVSpy).
  static let soul = reply(
    "7EC 10 3D 61 01 FF FF FF FF ", "7EC 21 76 23 28 23 28 03 00 ", "7EC 22 24 0E 71 07 05 07 06 ", "7EC 23 06 05 05 00 08 B8 15 ",
    "7EC 24 B8 01 00 00 8C 00 00 ", "7EC 25 89 27 00 00 89 FF 00 ", "7EC 26 00 34 B9 00 00 33 9E ", "7EC 27 00 23 1E 16 2D 01 71 ",
    "7EC 28 00 00 00 00 03 E8 00 ")
  /// Ioniq 28 kWh, 2101, H0, functional: four ECUs interleaved (JejuSoul/OBD-PIDs-for-HKMC-EVs).
  static let interleaved = [UInt8](
    """
    02C|0:6101FFFFF800|01E|0:6101000003FF|03D|0:6101FFFFFFFF|016|0:6101FFE00000|1:0002D402CD03F0|1:0838010A015C2F|7F2112|\
    1:B4256026480000|1:0921921A061B03|2:000582003401BD|2:0000000A002702|2:000F4816161616|2:00000000276234|3:04B84100000000|\
    3:5B04692F180018|3:01200000000000|3:1616160016CB3F|4:00220000600000|4:00D0FF00000000|4:CB0100007A0002|5:000001F3026A02|\
    5:5D4000025D4600|6:D2000000000000|6:00DECA0000D8E6|7:008A2FEB090002|8:0000000003E800||>
    """.utf8.map { $0 == UInt8(ascii: "|") ? 13 : $0 })
  /// The BMS part of it, as printed with headers on.
  static let ioniq = reply(
    "7EC103D6101FFFFFFFF", "7EC21B4256026480000", "7EC22000F4816161616", "7EC231616160016CB3F", "7EC24CB0100007A0002",
    "7EC255D4000025D4600", "7EC2600DECA0000D8E6", "7EC27008A2FEB090002", "7EC280000000003E800")
  /// An E-GMP car, H0 S0, every line end lost (a Home Assistant ESP project).
  static let glued = [UInt8](
    ("03E0:620101EFFBE71:EFB500000000002:FF9D1D2A120C0E3:110D0E0D0036CF4:90CFA7000078005:008F5B00008C996:000064990000607:7D0050F67000008:"
      + "06000000000BB8>").utf8)
  /// Mode 01, several parameters (Ircama/ELM327-emulator).
  static let multi = reply("7E8101241010007E500", "7E82103010004000680", "7E822077D0C00000000")
  static let parameter78 = reply("7E8100B41780D061F01", "7E8219003DA02A60000")
  /// Two ECUs with 29-bit identifiers (brendan-w/python-OBD).
  static let long = reply("18 DA F1 11 04 41 0C 0D 74 ", "18 DA F1 1D 04 41 0C 0D 74 ")
  /// K-line (brendan-w/python-OBD).
  static let kLine = reply("SEARCHING...", "86 F1 10 41 00 BE 3E F8 11 CD ")
  /// A banner with noise (grimlockrocks/pi-bluetooth-obd).
  static let noisyBanner: [UInt8] = Array("ATZ\r".utf8) + [0xFC] + Array("\r\rELM327 v1.5\r\r>".utf8)
  /// VIN, H0 (ELM327 data sheet).
  static let vehicleNumber = reply("014", "0: 49 02 01 31 44 34", "1: 47 50 30 30 52 35 35", "2: 42 31 32 33 34 35 36")
  /// ISO 9141-2: V9's response with that protocol's header and checksum.
  static let iso9141 = reply("BUS INIT: ...OK", "48 6B 10 41 0C 0D 74 91 ")
  /// SAE J1850 VPW (ELM327 data sheet).
  static let j1850 = reply("48 6B 10 41 00 BE 3E B8 11 FA ")
  /// V12's VIN on protocols before CAN: five lines, padded in front; with headers and without.
  static let legacyVIN = reply(
    "48 6B 10 49 02 01 00 00 00 31 40 ", "48 6B 10 49 02 02 44 34 47 50 1F ", "48 6B 10 49 02 03 30 30 52 35 F8 ",
    "48 6B 10 49 02 04 35 42 31 32 EC ", "48 6B 10 49 02 05 33 34 35 36 E5 ")
  static let bareVIN = reply(
    "49 02 01 00 00 00 31 ", "49 02 02 44 34 47 50 ", "49 02 03 30 30 52 35 ", "49 02 04 35 42 31 32 ", "49 02 05 33 34 35 36 ")
  /// Four trouble codes in lines of three.
  static let legacyCodes = reply("48 6B 10 43 01 33 01 71 03 00 AF ", "48 6B 10 43 04 20 00 00 00 00 2A ")

  /// Lines with an adapter's line ends.
  static func reply(_ lines: String...) -> [UInt8] { Array((lines.joined(separator: "\r") + "\r\r>").utf8) }

  /// A data record with some bytes changed, as a Kona or an EV6 would print it.
  static func record(_ base: [UInt8], _ changes: [Int: UInt8]) -> [UInt8] {
    var data = data(of: base)
    for (offset, byte) in changes { data[offset] = byte }
    return frames([0x62, 0x01, 0x01] + data)
  }

  /// The data bytes of a record, from a reply with 11-bit headers and no spaces.
  static func data(of reply: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    for line in String(decoding: reply, as: UTF8.self).split(separator: "\r") where line.count == 19 {
      let digits = line.dropFirst(3).compactMap { $0.hexDigitValue.map(UInt8.init) }
      let frame = stride(from: 0, to: 16, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
      bytes += frame[0] >> 4 == 1 ? frame[2...] : frame[1...]
    }
    return Array(bytes[3..<62])
  }

  /// A payload of more than seven bytes as printed from 7EC under H1 S0.
  static func frames(_ payload: [UInt8], from source: String = "7EC") -> [UInt8] {
    var frames = [[0x10 | UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)] + payload.prefix(6)]
    var rest = payload.dropFirst(6)
    while !rest.isEmpty {
      frames.append([0x20 | UInt8(frames.count & 15)] + rest.prefix(7) + Array(repeating: 0, count: max(0, 7 - rest.count)))
      rest = rest.dropFirst(7)
    }
    let lines = frames.map { source + $0.map { hex($0) }.joined() }
    return Array((lines.joined(separator: "\r") + "\r\r>").utf8)
  }

  static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true) }
}
