// The simulated ESP32 of the smart mirror. It has one writable characteristic, stores the written fields until the display has read them,
// and signals the display on a data line once a second while it stores fields.
// Source: ISM-Embedded's main.cpp (fields, 1 s loop, boot name, what Disconnected clears).

import Protocols

public typealias MirrorFault = Fault<MirrorFaultKind>

/// The faults of a mirror.
public enum MirrorFaultKind: String, FaultKind {
  case reboot
  case noDisplay = "no-display"

  public static let countedItems = "writes"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) { self == .noDisplay ? (.always, nil) : (.every(10), nil) }
  public var takesDuration: Bool { false }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .reboot: "the ESP32 restarts and loses all fields"
    case .noDisplay: "the display does not read the fields"
    }
  }
}

/// A simulated mirror. Its state survives disconnection.
public struct ESP32Mirror: Machine {
  /// The BLE name.
  public static let name = "ESP32-BLE-Server"
  /// The initial value of the characteristic.
  public static let initialValue = Array("Device Connected".utf8)

  public let schema = Schema()
  /// The state of the display.
  public private(set) var display = MirrorDisplay()
  /// The fields stored for the display, by tag.
  public private(set) var fields: [String: String] = ["Name": bootName]
  /// Stored tags that the display never reads. Because of them, the ESP32 never stops signalling.
  public private(set) var unreadTags: Set<String> = []
  /// Descriptions of the crashes so far, and of inputs that corrupted the data of the display.
  public private(set) var failures: [String] = []
  private let receiver: ESP32Receiver
  private var faults: FaultSet<MirrorFault.Kind>
  private let origin: Instant
  private var isConnected = false
  private var writes = 0
  /// When the main loop checks the fields next.
  private var nextCheck: Instant?
  private var displayReader = MirrorReader()

  private static let bootName = "User1"
  private static let loopPeriod: Nanoseconds = .second
  /// The value of the mirror's own temperature sensor. The main loop stores it while a name is stored.
  private static let indoorTemperature = "33.500000"

  /// Creates a mirror that is switched on at `origin`.
  public init(_ firmware: MirrorFirmware, origin: Instant = 0, faults: [MirrorFault] = []) {
    receiver = ESP32Receiver(firmware)
    (self.origin, self.faults) = (origin, FaultSet(faults))
  }

  public var nextWake: Instant? { [nextCheck, displayReader.nextWake].compactMap(\.self).min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    while let due = nextWake, due <= now { runStep(at: due, &effects) }
    switch input {
    case .linkChanged(.main, .up): isConnected = true
    case .linkChanged(.main, .down): isConnected = false
    case .received(.main, let bytes): written(bytes, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated mirror takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    scheduleCheck(at: now)
  }

  /// Returns the text in a written value, as the firmware decodes it, or nil if there is none.
  public func text(of value: [UInt8]) -> String? {
    guard case .success(let text) = receiver.decrypt(value) else { return nil }
    return text.firstIndex(of: UInt8(ascii: "+")).map { ESP32Receiver.latin1(text[..<$0]) }
  }

  /// Handles a decrypted text with its terminator. Tests use it to bypass the cipher.
  public mutating func handle(plaintext text: [UInt8], at now: Instant, _ effects: inout Effects) {
    handle(ESP32Receiver.parseTerminated(text), at: now, &effects)
    scheduleCheck(at: now)
  }

  private mutating func written(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    writes += 1
    handle(receiver.receive(bytes), at: now, &effects)
    if faults.due(.reboot, item: writes, after: now - origin) != nil { reboot(&effects) }
  }

  private mutating func handle(_ outcome: ESP32Receiver.Outcome, at now: Instant, _ effects: inout Effects) {
    switch outcome {
    case .crash(let text): crash(text, &effects)
    case .command("Disconnected"):
      fields = [:]
      unreadTags = []
      report("received Disconnected: all fields cleared", &effects)
    case .command: report("received Connected", &effects)
    case .pair("NewName", let value): store("Name", value, &effects)
    case .pair("Heart", let value):
      guard let number = ESP32Receiver.leadingInteger(value) else {
        return crash("Heart: \"\(value)\" is not a number: uncaught exception", &effects)
      }
      store("Heart", String(number), &effects)
    case .pair(let tag, let value): store(tag, value, &effects)
    }
  }

  private mutating func store(_ tag: String, _ value: String, _ effects: inout Effects) {
    if MirrorReader.order.contains(tag) {
      fields[tag] = value
      report("stored \(tag) \"\(value)\"", &effects)
    } else if unreadTags.insert(tag).inserted {
      report("stored \"\(tag)\", which the display never reads", &effects)
    }
  }

  /// Whether the firmware signals the display.
  private var mustSignal: Bool { !unreadTags.isEmpty || fields.contains { $0.key != "Name" && $0.key != "Temp" && !$0.value.isEmpty } }

  /// Schedules the next pass of the 1 s loop, if it will signal the display.
  private mutating func scheduleCheck(at now: Instant) {
    guard mustSignal, nextCheck == nil, !faults.contains(.noDisplay) else { return }
    nextCheck = origin + ((now - origin) / Self.loopPeriod + 1) * Self.loopPeriod
  }

  /// Runs the step that is due: the check of the loop, or the next read of the display.
  private mutating func runStep(at moment: Instant, _ effects: inout Effects) {
    if nextCheck == moment {
      nextCheck = nil
      if mustSignal { displayReader.signal(at: moment) }
      return scheduleCheck(at: moment)
    }
    guard let tag = displayReader.nextRequest(at: moment) else { return }
    let answer = tag == "Temp" && fields["Name"]?.isEmpty == false ? Self.indoorTemperature : fields[tag] ?? ""
    if tag != "Name" { fields[tag] = nil }
    guard let values = displayReader.receive(answer, at: moment) else { return }
    let outcome = display.handle(values)
    outcome.messages.forEach { report($0, &effects) }
    displayReader.extendProcessing(ifTakingPictures: outcome.isTakingPictures)
    // A failure of the display does not affect the ESP32.
    if let failure = outcome.failure {
      failures.append(failure.text)
      report(failure.text, &effects)
    }
  }

  private mutating func crash(_ text: String, _ effects: inout Effects) {
    failures.append(text)
    report("crash: \(text)", &effects)
    reboot(&effects)
  }

  private mutating func reboot(_ effects: inout Effects) {
    fields = ["Name": Self.bootName]
    (unreadTags, nextCheck) = ([], nil)
    report("restarting", &effects)
    if isConnected { effects.append(.resetLink(.main, reason: "the mirror restarts")) }
  }

  private func report(_ text: String, _ effects: inout Effects) { effects.append(.event(name: "mirror", text: text)) }
}
