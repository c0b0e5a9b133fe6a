// The initialisation of the adapter as a table: each command, and the effect if a clone does not support it. The protocol and the
// addressing follow (`Target`). Nothing is written to the EEPROM: ATM0 precedes ATSP, and an adapter without ATM0 gets ATTP.

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

  /// The handling of a response.
  enum Need { case banner, text, ok }

  var need: Need {
    switch self {
    case .reset: .banner
    case .identity, .chipIdentity: .text
    case .echoOff, .lineFeedsOff, .memoryOff, .spacesOff, .headersOn: .ok
    }
  }

  /// Whether it sets something that a reset or a raw command can change.
  var isSetting: Bool { need == .ok }

  var bytes: [UInt8] { Array(rawValue.utf8) }

  /// The feature that is lost if the adapter does not support it.
  var loss: String? {
    switch self {
    case .memoryOff: "the adapter does not support ATM0: the protocol is set without storing it"
    case .spacesOff: "the adapter does not support ATS0: replies are longer, polls slower"
    case .headersOn: "the adapter does not support ATH1: the responding ECU cannot be verified"
    default: nil
    }
  }
}

/// Commands without a reply since the link came up. After two failures a command is no longer sent: some clones hang instead of replying
/// `?`. A reply removes the command from the list.
struct UnansweredCommands: Sendable {
  /// Optional commands, by their prefix.
  private static let dispensable =
    SetupStep.allCases.filter { $0 != .reset }.map(\.rawValue) + ["ATCRA", "ATAR", "ATAT", "ATST", "ATDPN", "ATRV"]
  private var times: [String: Int] = [:]

  private static func name(of command: some Sequence<UInt8>) -> String? {
    let command = Array(command)
    return dispensable.first { command.starts(with: $0.utf8) }
  }

  /// Counts a missing reply. Returns true if the command will not be sent again.
  mutating func add(_ command: some Sequence<UInt8>) -> Bool {
    guard let name = Self.name(of: command) else { return false }
    times[name, default: 0] += 1
    return times[name] == 2
  }

  mutating func isAnswered(_ command: some Sequence<UInt8>) {
    guard !times.isEmpty, let name = Self.name(of: command) else { return }
    times[name] = nil
  }

  func holds(_ name: String) -> Bool { times[name, default: 0] >= 2 }
}

/// The capabilities of an adapter, per connection.
struct AdapterTraits: Sendable {
  /// Commands replied to with `?`.
  private(set) var missing: Set<SetupStep> = []
  /// It can filter for one ECU.
  private(set) var hasFilter = true
  /// It supports adaptive timing, or a timeout setting.
  private(set) var hasAdaptiveTiming = true
  private(set) var hasTimeout = true
  /// It reports the detected protocol.
  private(set) var namesBus = true
  /// It reports the voltage at the OBD connector.
  private(set) var hasVoltage = true
  /// It supports low power mode.
  private(set) var canSleep = true
  /// It is an STN chip, which takes the header with the request (STPX).
  private(set) var takesHeader = false
  /// With STPX it counts frames instead of messages.
  private(set) var countsFrames = false
  private(set) var names: [String] = []

  static let filterLoss = "the adapter does not support ATCRA: responses of other ECUs are not filtered out"

  init(_ unanswered: UnansweredCommands = UnansweredCommands()) {
    missing = Set(SetupStep.allCases.filter { unanswered.holds($0.rawValue) })
    hasFilter = !unanswered.holds("ATCRA") && !unanswered.holds("ATAR")
    (hasAdaptiveTiming, hasTimeout) = (!unanswered.holds("ATAT"), !unanswered.holds("ATST"))
    (namesBus, hasVoltage) = (!unanswered.holds("ATDPN"), !unanswered.holds("ATRV"))
  }

  mutating func lacks(_ step: SetupStep) { missing.insert(step) }
  mutating func lacksFilter() { hasFilter = false }
  mutating func lacksVoltage() { hasVoltage = false }
  mutating func cannotSleep() { canSleep = false }
  mutating func takesNoHeader() { takesHeader = false }
  mutating func doesCountFrames() { countsFrames = true }

  /// An identification string of the adapter.
  mutating func isCalled(_ name: String, by step: SetupStep) {
    if step == .chipIdentity { takesHeader = name.hasPrefix("STN") }
    if !name.isEmpty && !names.contains(name) { names.append(name) }
  }

  /// The displayed name: `ELM327 v1.5 (STN1110 v4.2.0)`.
  var name: String? {
    guard let first = names.first else { return nil }
    return names.count > 1 ? "\(first) (\(names.dropFirst().joined(separator: ", ")))" : first
  }

  /// The settings again, without those that the adapter does not support.
  var settings: [SetupStep] { SetupStep.allCases.filter { $0.isSetting && !missing.contains($0) } }
}

/// The result of a setup command.
enum SetupAnswer: Equatable {
  case done
  case unknownCommand
  case nonsense

  /// Evaluates the reply to a setup step; stores the adapter's name in `traits`.
  init(to step: SetupStep, _ reply: ArraySlice<UInt8>, _ traits: inout AdapterTraits) {
    // Banners may contain noise from a chip that has just started.
    let lines = lines(of: reply.filter { $0 < 0x80 })
    let statuses = lines.map { line -> ELMStatus? in if case .status(let status) = ELMLine(line) { status } else { nil } }
    switch step.need {
    case .banner, .text:
      if step.need == .text && statuses.contains(.notUnderstood) { self = .unknownCommand; return }
      // A name in ASCII; at the wrong baud rate any bytes.
      let isName = { (line: [UInt8]) in line.count >= 3 && line.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }
      let name = zip(lines, statuses).first { isName($0.0) && ($0.1 == nil || $0.1 == .banner) }?.0
      let isPlain = reply.allSatisfy { $0 < 0x80 }
      guard let name, isPlain || name.starts(with: "ELM327".utf8) else {
        self = step.need == .text ? .unknownCommand : .nonsense
        return
      }
      if step.need == .text { traits.isCalled(printable(name, limit: 60), by: step) }
      self = .done
    case .ok: self.init(statuses)
    }
  }

  /// Evaluates the reply to a setting.
  init(_ reply: ArraySlice<UInt8>) {
    self.init(lines(of: reply.filter { $0 < 0x80 }).map { if case .status(let status) = ELMLine($0) { status } else { nil } })
  }

  private init(_ statuses: [ELMStatus?]) {
    self = statuses.last == .ok ? .done : statuses.contains(.notUnderstood) ? .unknownCommand : .nonsense
  }
}
