import Peers
import Testing

@testable import Protocols

/// The messages for the mirror, and their bytes over the air.
@Suite struct MirrorMessageTests {
  private let cipher = try? MirrorCipher(key: MirrorRig.key, iv: MirrorRig.iv)

  private func wire(_ message: MirrorMessage) throws -> String {
    String(decoding: MirrorProfile.stock(try #require(cipher)).encode(message), as: UTF8.self)
  }

  @Test func `texts and names are encoded as by the app`() throws {
    #expect(try wire(.connected) == "06a49003f96cb7389f5b654003f73c82")
    #expect(try wire(.disconnected) == "2a17c8913bd04525caa0a3cc4508869c")
    #expect(try wire(MirrorMessage(.name, "Ada")) == "d4d147bfdd9abda506327ef1f011d064")
    #expect(try wire(MirrorMessage(.newName, "Ada L")) == "436facae149d382881cc39bd5341d248")
    let long = "f942dfd349da8872369786c4d1eab8108dd7c52454239c3d62be25b20b995c0a9f33293ec7a64606f046b83fe3ea13a8"
    #expect(try wire(MirrorMessage(.name, "0123456789012345678901234567890")) == long)
    let cloudy = "b01dd02dfe20c4d590defb6bc270df5693a64cf98a47ab30a7360de73facfbef"
    #expect(try wire(MirrorMessage(.condition, "partlyCloudy")) == cloudy)
  }

  @Test(
    arguments: [
      (.brightness, 50, "Bright: 50.0", "61e2aa15302031067e054f4878f36ea6"),
      (.brightness, 100, "Bright: 100.0", "4163812dee784e521035e4b93fe5f1fb"),
      (.heart, 72, "Heart: 72.0", "84eeffba5680caa1165f00ccfc99f137"),
      (.steps, 4321, "StepC: 4321.00", "cda465b1325cd707a94666ac08fd5fe2"),
      (.energy, 310.25, "CaloB: 310.25", "29c1e8f74cbdea1e5c71378eba203996"),
      (.distance, 1.94, "DistW: 1.94", "565f6503a5458286da8aa179953a7f9e"),
      (.temperature, 68.9, "TempF: 68", "c06e9b8a0d63840581185aaed9b43113"),
      (.uvIndex, 4.85, "UVInd: 5", "7f882d91d6b53402400f85a3db02bc19"),
      (.humidity, 43.99, "Humid: 43", "8bb8bd7d5165bac13c0dbcad1f92128e"),
    ] as [(MirrorMessage.Tag, Double, String, String)])
  func `numbers are encoded as by the app`(_ tag: MirrorMessage.Tag, _ number: Double, _ text: String, _ hex: String) throws {
    let message = try MirrorMessage(tag, number)
    #expect(String(decoding: message.text, as: UTF8.self) == text)
    #expect(try wire(message) == hex)
  }

  @Test(
    arguments: [
      (.temperature, -4.7, "TempF: -4"), (.temperature, -0.4, "TempF: 0"), (.distance, 0, "DistW: 0.00"), (.distance, 0.056, "DistW: 0.06"),
      (.steps, 1_000_000, "StepC: 1000000.00"), (.heart, 59.96, "Heart: 60.0"), (.brightness, 0, "Bright: 0.0"),
      (.uvIndex, 0.4, "UVInd: 0"),
    ] as [(MirrorMessage.Tag, Double, String)])
  func `numbers are rounded as their tag requires`(_ tag: MirrorMessage.Tag, _ number: Double, _ text: String) throws {
    #expect(String(decoding: try MirrorMessage(tag, number).text, as: UTF8.self) == text)
  }

  @Test func `a value that does not fit its tag is rejected`() {
    for tag in MirrorMessage.Tag.allCases {
      for number in [Double.nan, .infinity, -.infinity, 1e300, -1e300, 2_000_000] {
        #expect(throws: ValueError.self) { try MirrorMessage(tag, number) }
      }
    }
    for percent in [-1, -0.1, 100.5, 101] { #expect(throws: ValueError.self) { try MirrorMessage(.brightness, percent) } }
    for tag in [MirrorMessage.Tag.brightness, .heart, .connected, .disconnected] {
      #expect(throws: ValueError.self) { try MirrorMessage(tag, "50.0") }
    }
  }

  @Test(arguments: [
    "", "a+b", "O'Neill", "a/b", "a.b", "a\nb", "\u{0}", "\u{7F}", "\u{85}", "名", "Łucja", "ÿ", "e\u{301}", "Default", " ", "   ",
    "01234567890123456789012345678901",
  ])
  func `names that harm the mirror are rejected with a reason`(_ name: String) {
    #expect(MirrorMessage.refusal(name: name) != nil)
    for tag in [MirrorMessage.Tag.name, .newName] { #expect(throws: ValueError.self) { try MirrorMessage(tag, name) } }
  }

  /// The mirror's program stores, shows and finds each of them unchanged.
  @Test(arguments: [
    "Zoë", "Ångström", "François (jr)", "Ada & Bob", "a:b", "\"Ada\"", "back\\slash", "Ada!", "100%", "default", "Ada ",
    "þ",
    "éééééééééééééééééééééééééééééé1",
  ])
  func `supported names are sent with one byte per character`(_ name: String) throws {
    let message = try MirrorMessage(.newName, name)
    #expect(message.text.count == 9 + name.unicodeScalars.count)
    var rig = try MirrorRig()
    rig.start(restored: ["led": Array("40".utf8)], for: 10 * .second)
    rig.set("username", .string(name))
    rig.run(for: 10 * .second)
    #expect(rig.mirror.display.enrolled == ["Ada", name] && rig.mirror.display.profiles[name]?["Bright"] == "40.0")
    #expect(rig.mirror.failures.isEmpty && rig.text("sent-name") == name)
  }

  @Test(arguments: ["", "it's", "a+b", "tab\t", "名", "01234567890123456789012345678901"])
  func `conditions that harm the mirror are rejected`(_ condition: String) {
    #expect(throws: ValueError.self) { try MirrorMessage(.condition, condition) }
  }

  @Test(arguments: [(14, 32), (15, 64), (30, 64), (31, 96), (46, 96), (47, 128), (62, 128), (63, 160)])
  func `every text length has its encrypted size, and the text round-trips`(_ count: Int, _ size: Int) throws {
    let text = [UInt8](repeating: 0x61, count: count)
    let sealed = try #require(cipher).seal(text)
    #expect(sealed.count == size)
    #expect(MirrorDecryption.read(sealed) == String(decoding: text, as: UTF8.self))
  }

  @Test func `a text that is too long or contains the terminator is not encrypted`() throws {
    let cipher = try #require(cipher)
    #expect(throws: ValueError.self) { try cipher.seal([UInt8](repeating: 0x61, count: 64)) }
    #expect(throws: ValueError.self) { try cipher.seal(Array("Name: a+b".utf8)) }
    #expect(throws: ValueError.self) { try MirrorCipher(key: [1], iv: MirrorRig.iv) }
  }

  @Test func `keys have two forms, and errors do not reveal them`() throws {
    #expect(try MirrorCipher.sixteenBytes(Array("ascii:0123456789ABCDEF".utf8)) == MirrorRig.key)
    #expect(try MirrorCipher.sixteenBytes(Array("hex:30313233343536373839414243444546".utf8)) == MirrorRig.key)
    for wrong in [
      "0123456789ABCDEF", "ascii:tooshort", "ascii:0123456789ABCDEF0", "hex:303132", "hex:zz313233343536373839414243444546", "",
    ] {
      let error = #expect(throws: ValueError.self) { try MirrorCipher.sixteenBytes(Array(wrong.utf8)) }
      let words = error?.description ?? ""
      #expect(!words.contains("0123") && !words.contains("tooshort") && !words.contains("zz31"), "\(words)")
    }
    #expect("\(try #require(cipher))" == "(redacted)")
    var dumped = ""
    dump(try #require(cipher), to: &dumped)
    #expect(!dumped.contains("48") && !dumped.contains("iv"), "\(dumped)")
  }
}

/// The mirror's decryption, for tests.
enum MirrorDecryption {
  /// The text of a value, or nil if the mirror would not accept it.
  static func read(_ value: [UInt8]) -> String? {
    let mirror = ESP32Mirror(.stock(key: MirrorRig.key, iv: MirrorRig.iv))
    return mirror.text(of: value)
  }
}
