import Testing

@testable import Peers
@testable import Protocols

/// Whatever users set and other devices publish, the machine sends nothing that crashes the mirror's firmware. The simulated mirror has
/// the firmware's flaws: buffers that overflow, conversions that throw, SQL that a quotation mark ends.
@Suite struct MirrorRobustnessTests {
  private static let letters = Array("abzAZ09 _-+'\"/\\.:;,\n\u{0}éß名🦈Default".unicodeScalars)
  private static let specials: [Double] = [
    .nan, .infinity, -.infinity, 0, -0.0, 1e300, -1e300, .leastNonzeroMagnitude, .greatestFiniteMagnitude, 100, 100.5, -1, 2_147_483_648,
    0.05, 999.999,
  ]

  private static func text(_ random: inout SeededRandom) -> String {
    var text = String.UnicodeScalarView()
    let length = random.next() % (random.next() % 2 == 0 ? 40 : 4)
    for _ in 0..<Int(length) { text.append(letters[Int(random.next() % UInt64(letters.count))]) }
    return String(text)
  }

  private static func number(_ random: inout SeededRandom) -> Double {
    switch random.next() % 4 {
    case 0: specials[Int(random.next() % UInt64(specials.count))]
    case 1: Double(bitPattern: random.next())
    case 2: Double(Int64(bitPattern: random.next()) % 100_000) / 16
    default: Double(random.next() % 1200) / 8 - 20
    }
  }

  private static func value(_ random: inout SeededRandom) -> Value {
    switch random.next() % 6 {
    case 0: .string(text(&random))
    case 1: .int(Int(truncatingIfNeeded: Int64(bitPattern: random.next())))
    case 2: .list([text(&random)])
    default: .float(number(&random))
    }
  }

  @Test(arguments: 0..<4) func `a million messages do not crash the mirror`(_ seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    var mirror = ESP32Mirror(.plain)
    var effects = Effects()
    var (made, longest) = (0, 0)
    let tags = MirrorMessage.Tag.allCases
    let texts: [MirrorMessage.Tag] = [.name, .newName, .condition]
    for _ in 0..<250_000 {
      let isText = random.next() % 3 == 0
      let tag = (isText && random.next() % 8 != 0 ? texts : tags).randomElement(using: &random) ?? .name
      guard
        let message = isText ? try? MirrorMessage(tag, Self.text(&random)) : try? MirrorMessage(tag, Self.number(&random))
      else { continue }
      made += 1
      longest = max(longest, message.text.count)
      mirror.handle(plaintext: message.text + [MirrorCipher.terminator], at: 0, &effects)
      effects.removeAll()
    }
    #expect(mirror.failures.isEmpty, "\(mirror.failures.first ?? "")")
    #expect(mirror.unreadTags.isEmpty && made > 20_000 && longest <= 40)
  }

  @Test(arguments: 0..<6) func `no sequence of commands and observations crashes the mirror`(_ seed: Int) throws {
    var random = SeededRandom(seed: UInt64(100 + seed))
    var rig = try MirrorRig.collecting(seed % 2 == 0 ? [:] : ["interval": .int(5)])
    rig.start(restored: seed % 3 == 0 ? [:] : MirrorRig.allOn, for: .second)
    let names = rig.machine.schema.properties.filter { $0.access == .write }
    var commands: CommandID = 0
    for _ in 0..<1500 {
      switch random.next() % 12 {
      case 0...3:
        let property = names[Int(random.next() % UInt64(names.count))]
        let setting: Value =
          switch property.type {
          case .bool: .bool(random.next() % 3 != 0)
          case .int: .int(property.name == "led" ? Int(random.next() % 101) : 5 + Int(random.next() % 60))
          default: .string(random.next() % 2 == 0 ? Self.text(&random) : "User \(random.next() % 9)")
          }
        commands += 1
        rig.set(property.name, setting, id: commands)
      case 4...6:
        if let reference = rig.observing.randomElement(using: &random) {
          rig.give(.observed(reference: reference, random.next() % 5 == 0 ? .absent("stale") : .value(Self.value(&random))))
        }
      case 7:
        commands += 1
        rig.sendNow(id: commands)
      case 8 where random.next() % 4 == 0: rig.isUp ? rig.disconnect() : rig.connect()
      case 9 where random.next() % 6 == 0:
        rig.answers = [.refused, random.next() % 2 == 0 ? .none : .refused]
      case 10 where random.next() % 8 == 0 && rig.isUp:
        rig.give(.stopping)
        rig.run(for: 1500 * .millisecond)
        rig.disconnect()
      default:
        rig.linkDelay = Int64(random.next() % 400) * .millisecond
        rig.run(for: Int64(random.next() % 4000) * .millisecond)
      }
      if !rig.isUp, random.next() % 6 == 0 { rig.connect() }
    }
    rig.answers = []
    rig.run(for: 20 * .second)
    #expect(rig.mirror.failures.isEmpty, "\(rig.mirror.failures.first ?? "")")
    #expect(rig.mirror.unreadTags.isEmpty && rig.texts.count > 300)
    for id in 1...commands { #expect(rig.outcome(id) != nil, "command \(id) never ended") }
    // No value before a name in any session.
    var isNamed = false
    var unnamed = 0
    for text in rig.texts {
      if text == "Connected" { isNamed = false } else if text.hasPrefix("Name: ") || text.hasPrefix("NewName: ") { isNamed = true }
      if !isNamed, text != "Connected", text != "Disconnected" { unnamed += 1 }
    }
    #expect(unnamed == 0)
  }

  @Test func `unchecked messages crash the mirror`() throws {
    func crash(_ value: String) -> String {
      var mirror = ESP32Mirror(.stock(key: MirrorRig.key, iv: MirrorRig.iv))
      var effects = Effects()
      mirror.handle(.received(.main, Array(value.utf8)), at: 0, &effects)
      return mirror.failures.first ?? ""
    }
    #expect(crash("nonsense").contains("is not a hex number"))
    #expect(crash(String(repeating: "0", count: 202)).contains("overflow a stack buffer"))
    #expect(crash(String(repeating: "0", count: 32)).contains("no + in"))
    var mirror = ESP32Mirror(.plain)
    var effects = Effects()
    mirror.handle(plaintext: Array("Heart: seventy+".utf8), at: 0, &effects)
    mirror.handle(plaintext: Array("Name:+".utf8), at: 0, &effects)
    #expect(mirror.failures.count == 2)
    mirror.handle(plaintext: Array("AlcoB: 1+".utf8), at: 0, &effects)
    #expect(mirror.unreadTags == ["AlcoB"] && mirror.nextWake == .second)
    mirror.handle(plaintext: Array("Name: Ada+".utf8), at: 0, &effects)
    mirror.handle(plaintext: Array("Condi: it's+".utf8), at: 0, &effects)
    for _ in 0..<20 { mirror.handle(.wake, at: mirror.nextWake ?? 0, &effects) }
    #expect(mirror.failures.last?.contains("SQL") == true)
  }
}
