// How an adapter is made ready, as a table: what is sent, and what it means when a clone does not know it. Nothing here
// is written to the adapter's EEPROM: ATM0 goes before ATSP6, and an adapter without ATM0 gets ATTP6. Back in step after
// a fault or a raw command, the same table without reset and questions restores the settings.

/// One command of the setup.
enum SetupStep: String, CaseIterable, Sendable {
  case reset = "ATZ"
  case echoOff = "ATE0"
  case lineFeedsOff = "ATL0"
  case memoryOff = "ATM0"
  case spacesOff = "ATS0"
  case headersOn = "ATH1"
  case identity = "ATI"
  case chipIdentity = "STI"
  case bus = "ATSP6"
  case header = "ATSH7E4"
  case filter = "ATCRA7EC"

  /// The CAN identifier that the battery controller answers from.
  static let source: UInt32 = 0x7EC
  static let busWithoutMemory = "ATTP6"

  /// What becomes of an answer.
  enum Need { case banner, text, ok, required }

  var need: Need {
    switch self {
    case .reset: .banner
    case .identity, .chipIdentity: .text
    case .echoOff, .lineFeedsOff, .memoryOff, .spacesOff, .headersOn, .filter: .ok
    case .bus, .header: .required
    }
  }

  /// Whether it sets something that a reset or a raw command can have changed.
  var isSetting: Bool { need != .banner && need != .text }

  /// What is lost on an adapter that does not know it.
  var loss: String? {
    switch self {
    case .memoryOff: "ATM0 is unknown: the bus is chosen without storing it"
    case .spacesOff: "ATS0 is unknown: replies are longer, polls slower"
    case .headersOn: "ATH1 is unknown: the answering controller cannot be checked"
    case .filter: "ATCRA is unknown: other controllers are not filtered out"
    default: nil
    }
  }
}

/// What setting up has found out about an adapter. It counts for one connection.
struct AdapterTraits: Sendable {
  /// Commands answered with `?`.
  private(set) var missing: Set<SetupStep> = []
  private(set) var names: [String] = []

  /// The command to send for a step.
  func command(_ step: SetupStep) -> [UInt8] {
    Array((step == .bus && missing.contains(.memoryOff) ? SetupStep.busWithoutMemory : step.rawValue).utf8)
  }

  mutating func lacks(_ step: SetupStep) { missing.insert(step) }

  /// An identity in the adapter's own words.
  mutating func isCalled(_ name: String) {
    if !name.isEmpty && !names.contains(name) { names.append(name) }
  }

  /// What a person reads: `ELM327 v1.5 (STN1110 v4.2.0)`.
  var name: String? {
    guard let first = names.first else { return nil }
    return names.count > 1 ? "\(first) (\(names.dropFirst().joined(separator: ", ")))" : first
  }

  /// The settings again, without those that the adapter does not know.
  var settings: [SetupStep] { SetupStep.allCases.filter { $0.isSetting && !missing.contains($0) } }
}

/// What an answer to a setup command comes to.
enum SetupAnswer {
  case done
  case unknownCommand
  case nonsense

  /// Judges the lines of a reply to a step; `traits` learns the adapter's name.
  init(to step: SetupStep, _ reply: ArraySlice<UInt8>, _ traits: inout AdapterTraits) {
    // Banners may hold noise from a chip that has just started.
    let lines = lines(of: reply.filter { $0 < 0x80 })
    let statuses = lines.map { line -> ELMStatus? in if case .status(let status) = ELMLine(line) { status } else { nil } }
    switch step.need {
    case .banner, .text:
      if step.need == .text && statuses.contains(.notUnderstood) { self = .unknownCommand; return }
      // A name in plain letters, or at the wrong baud rate anything.
      let isName = { (line: [UInt8]) in line.count >= 3 && line.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }
      let name = zip(lines, statuses).first { isName($0.0) && ($0.1 == nil || $0.1 == .banner) }?.0
      let isPlain = reply.allSatisfy { $0 < 0x80 }
      guard let name, isPlain || name.starts(with: "ELM327".utf8) else {
        self = step.need == .text ? .unknownCommand : .nonsense
        return
      }
      if step.need == .text { traits.isCalled(printable(name, limit: 60)) }
      self = .done
    case .ok, .required:
      if statuses.last == .ok {
        self = .done
      } else if statuses.contains(.notUnderstood) {
        self = .unknownCommand
      } else {
        self = .nonsense
      }
    }
  }
}
