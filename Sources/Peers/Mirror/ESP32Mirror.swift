// The smart mirror's ESP32 seen from its central: one characteristic that is written, fields that it keeps until the display has
// fetched them, and a data line that it raises once a second while there are some. It never answers. How the display reads the
// fields stands in MirrorReader, what it makes of them in MirrorDisplay, how the bytes of a write are read in ESP32Receiver.
// Facts: ISM-Embedded's main.cpp (fields, 1 s loop, boot name, what Disconnected clears).

import Protocols

public typealias MirrorFault = Fault<MirrorFaultKind>

/// The faults of a mirror.
public enum MirrorFaultKind: String, FaultKind {
  case reboot
  case noDisplay = "no-display"

  public static let countedItems = "writes"

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
  private let receiver: ESP32Receiver
  private let faults: [MirrorFault]
  private let origin: Instant
  private var isConnected = false
  private var writes = 0
  private var triggered: Set<Int> = []
  /// When the loop looks at the fields next.
  private var looks: Instant?
  private var reader = MirrorReader()

  private static let bootName = "User1"
  private static let pass: Nanoseconds = .second
  /// Of the mirror's own sensor, which the loop writes while there is a name.
  private static let indoors = "33.500000"

  /// A mirror with this firmware that was switched on at `origin`.
  public init(_ firmware: MirrorFirmware, origin: Instant = 0, faults: [MirrorFault] = []) {
    receiver = ESP32Receiver(firmware)
    (self.origin, self.faults) = (origin, faults)
  }

  public var nextWake: Instant? { [looks, reader.nextWake].compactMap(\.self).min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    while let due = nextWake, due <= now { turn(at: due, &effects) }
    switch input {
    case .linkChanged(.main, .up): isConnected = true
    case .linkChanged(.main, .down): isConnected = false
    case .received(.main, let bytes): written(bytes, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "no-action", "a simulated mirror takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    raise(at: now)
  }

  /// What this firmware reads in a value that is written; nil where it reads none.
  public func text(of value: [UInt8]) -> String? {
    guard case .success(let text) = receiver.decrypt(value) else { return nil }
    return text.firstIndex(of: UInt8(ascii: "+")).map { ESP32Receiver.latin1(text[..<$0]) }
  }

  /// Takes a text as it is once it was decrypted, with its end mark: what was heard, without the time that ciphers take.
  public mutating func take(plain text: [UInt8], at now: Instant, _ effects: inout Effects) {
    heard(ESP32Receiver.cut(text), at: now, &effects)
    raise(at: now)
  }

  private mutating func written(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    writes += 1
    heard(receiver.hear(bytes), at: now, &effects)
    for (index, fault) in faults.enumerated() where fault.kind == .reboot {
      switch fault.moment {
      case .every(let count) where writes % count == 0: reboot(&effects)
      case .after(let time) where now - origin >= time && triggered.insert(index).inserted: reboot(&effects)
      default: break
      }
    }
  }

  private mutating func heard(_ heard: ESP32Receiver.Outcome, at now: Instant, _ effects: inout Effects) {
    switch heard {
    case .crash(let words): crash(words, &effects)
    case .word("Disconnected"):
      fields = [:]
      stuck = []
      say("it was told Disconnected, and has forgotten everything", &effects)
    case .word: say("it was told Connected", &effects)
    case .pair("NewName", let value): keep("Name", value, &effects)
    case .pair("Heart", let value):
      guard let number = ESP32Receiver.wholeNumber(value) else {
        return crash("Heart: \"\(value)\" is no number, and nobody catches that", &effects)
      }
      keep("Heart", String(number), &effects)
    case .pair(let tag, let value): keep(tag, value, &effects)
    }
  }

  private mutating func keep(_ tag: String, _ value: String, _ effects: inout Effects) {
    if MirrorReader.order.contains(tag) {
      fields[tag] = value
      say("it keeps \(tag) \"\(value)\"", &effects)
    } else if stuck.insert(tag).inserted {
      say("it keeps \"\(tag)\" for ever: nobody fetches that", &effects)
    }
  }

  private var isRaised: Bool { !stuck.isEmpty || fields.contains { $0.key != "Name" && $0.key != "Temp" && !$0.value.isEmpty } }

  /// The loop looks once a second, on a grid of its own.
  private mutating func raise(at now: Instant) {
    guard isRaised, looks == nil, !faults.contains(where: { $0.kind == .noDisplay }) else { return }
    looks = origin + ((now - origin) / Self.pass + 1) * Self.pass
  }

  /// What is due at this moment: the loop's look, or the display's next read.
  private mutating func turn(at moment: Instant, _ effects: inout Effects) {
    if looks == moment {
      looks = nil
      if isRaised { reader.signal(at: moment) }
      return raise(at: moment)
    }
    guard let tag = reader.asks(at: moment) else { return }
    let answer = tag == "Temp" && fields["Name"]?.isEmpty == false ? Self.indoors : fields[tag] ?? ""
    if tag != "Name" { fields[tag] = nil }
    guard let read = reader.take(answer, at: moment) else { return }
    let outcome = display.take(read)
    outcome.words.forEach { say($0, &effects) }
    reader.rests(longer: outcome.isTakingPictures)
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
    (stuck, looks) = ([], nil)
    say("it starts again", &effects)
    if isConnected { effects.append(.resetLink(.main, reason: "the mirror starts again")) }
  }

  private func say(_ words: String, _ effects: inout Effects) { effects.append(.event(name: "mirror", text: words)) }
}
