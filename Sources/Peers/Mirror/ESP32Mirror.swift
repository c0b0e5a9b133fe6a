// The smart mirror's ESP32 seen from its central: one characteristic that is written, fields that it keeps until the display has
// fetched them, and a data line that it raises once a second while there are some. It never answers. What the display makes of
// the fields stands in MirrorDisplay; how the bytes are read in ESP32Ear.
// Facts: ISM-Embedded's main.cpp (fields, 1 s loop, boot name, what Disconnected clears) and nano/subsystems/i2c.py.

import Protocols

public typealias MirrorFault = Fault<MirrorTrouble>

/// The faults of a mirror.
public enum MirrorTrouble: String, FaultKind {
  case reboot
  case noDisplay = "no-display"

  public static let struck = "writes"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) { self == .noDisplay ? (.always, nil) : (.every(10), nil) }
  public var takesTime: Bool { false }

  /// What it does.
  public var help: String {
    switch self {
    case .reboot: "the ESP32 starts again and has forgotten everything"
    case .noDisplay: "nobody fetches what the ESP32 keeps"
    }
  }
}

/// A simulated mirror. It outlives its connections.
public struct ESP32Mirror: Machine {
  /// What it calls itself, and what its characteristic holds before anybody has written.
  public static let name = "ESP32-BLE-Server"
  public static let firstValue = Array("Device Connected".utf8)

  public let schema = Schema()
  /// What the display knows and shows.
  public private(set) var display = MirrorDisplay()
  /// What is kept for the display, by tag.
  public private(set) var fields: [String: String] = ["Name": bootName]
  /// Tags that nobody fetches: they raise the data line for ever.
  public private(set) var stuck: Set<String> = []
  /// What crashed, in a person's words.
  public private(set) var crashes: [String] = []
  private let ear: ESP32Ear
  private let faults: [MirrorFault]
  private let origin: Instant
  private var isConnected = false
  private var writes = 0
  private var struck: Set<Int> = []
  /// When the loop looks at the fields next.
  private var looks: Instant?
  /// The display fetches: how many fields it has, and when it takes the next.
  private var fetching: (count: Int, at: Instant)?

  private static let bootName = "User1"
  private static let pass: Nanoseconds = .second
  /// Of one field over I2C.
  private static let fetch: Nanoseconds = 150 * .millisecond
  private static let order = ["Name", "TempF", "Condi", "UVInd", "Humid", "CaloB", "StepC", "DistW", "Heart", "Bright", "Temp"]
  /// An answer over I2C holds no more.
  private static let longest = 31

  /// A mirror with this firmware that was switched on at `origin`.
  public init(_ firmware: MirrorFirmware, origin: Instant = 0, faults: [MirrorFault] = []) {
    ear = ESP32Ear(firmware)
    (self.origin, self.faults) = (origin, faults)
  }

  public var nextWake: Instant? { [looks, fetching?.at].compactMap(\.self).min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up): isConnected = true
    case .linkChanged(.main, .down): isConnected = false
    case .received(.main, let bytes): written(bytes, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "no-action", "a simulated mirror takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    while let (count, moment) = fetching, now >= moment { fetch(count, at: moment, &effects) }
    if let moment = looks, now >= moment {
      looks = nil
      if fetching == nil { fetching = (0, moment) }
    }
    raise(at: now)
  }

  /// What this firmware reads in a value that is written; nil where it reads none.
  public func text(of value: [UInt8]) -> String? {
    guard case .success(let text) = ear.decrypt(value) else { return nil }
    return text.firstIndex(of: UInt8(ascii: "+")).map { String(decoding: text[..<$0], as: UTF8.self) }
  }

  /// Takes a text as it is once it was decrypted, with its end mark: what was heard, without the time that ciphers take.
  public mutating func take(plain text: [UInt8], at now: Instant, _ effects: inout Effects) {
    heard(ESP32Ear.cut(text), at: now, &effects)
    raise(at: now)
  }

  private mutating func written(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    writes += 1
    heard(ear.hear(bytes), at: now, &effects)
    for (index, fault) in faults.enumerated() where fault.kind == .reboot {
      switch fault.moment {
      case .every(let count) where writes % count == 0: reboot(&effects)
      case .after(let time) where now - origin >= time && struck.insert(index).inserted: reboot(&effects)
      default: break
      }
    }
  }

  private mutating func heard(_ heard: ESP32Ear.Heard, at now: Instant, _ effects: inout Effects) {
    switch heard {
    case .crash(let words): crash(words, &effects)
    case .word("Disconnected"):
      fields = [:]
      stuck = []
      say("it was told Disconnected, and has forgotten everything", &effects)
    case .word: say("it was told Connected", &effects)
    case .pair("NewName", let value): keep("Name", value, &effects)
    case .pair("Heart", let value):
      guard let number = ESP32Ear.wholeNumber(value) else {
        return crash("Heart: \"\(value)\" is no number, and nobody catches that", &effects)
      }
      keep("Heart", String(number), &effects)
    case .pair(let tag, let value): keep(tag, value, &effects)
    }
  }

  private mutating func keep(_ tag: String, _ value: String, _ effects: inout Effects) {
    if Self.order.contains(tag) {
      fields[tag] = value
      say("it keeps \(tag) \"\(value)\"", &effects)
    } else if stuck.insert(tag).inserted {
      say("it keeps \"\(tag)\" for ever: nobody fetches that", &effects)
    }
  }

  /// The loop looks once a second, on a grid of its own.
  private mutating func raise(at now: Instant) {
    let isRaised = !stuck.isEmpty || fields.contains { $0.key != "Name" && $0.key != "Temp" && !$0.value.isEmpty }
    guard isRaised, looks == nil, fetching == nil, !faults.contains(where: { $0.kind == .noDisplay }) else { return }
    looks = origin + ((now - origin) / Self.pass + 1) * Self.pass
  }

  private mutating func fetch(_ count: Int, at now: Instant, _ effects: inout Effects) {
    let tag = Self.order[count]
    let value = fields[tag].map { String(decoding: $0.utf8.prefix(Self.longest), as: UTF8.self) } ?? ""
    if tag != "Name", tag != "Temp" { fields[tag] = nil }
    display.fetched(tag, value)
    guard count + 1 == Self.order.count else { return fetching = (count + 1, now + Self.fetch) }
    fetching = nil
    let outcome = display.finish()
    outcome.words.forEach { say($0, &effects) }
    // The display's program is another one: the ESP32 goes on.
    if let words = outcome.crash {
      crashes.append(words)
      say("crash: the display: \(words)", &effects)
    }
  }

  private mutating func crash(_ words: String, _ effects: inout Effects) {
    crashes.append(words)
    say("crash: \(words)", &effects)
    reboot(&effects)
  }

  private mutating func reboot(_ effects: inout Effects) {
    fields = ["Name": Self.bootName]
    (stuck, looks, fetching) = ([], nil, nil)
    say("it starts again", &effects)
    if isConnected { effects.append(.resetLink(.main, reason: "the mirror starts again")) }
  }

  private func say(_ words: String, _ effects: inout Effects) { effects.append(.event(name: "mirror", text: words)) }
}
