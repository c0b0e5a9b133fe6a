// How an adapter is made ready, as a table: what is sent, and what it means when a clone does not know it. The vehicle's bus and whom
// to ask come afterwards (`Target`). Nothing is written to the adapter's EEPROM: ATM0 goes before ATSP, and an adapter without ATM0
// gets ATTP. After a raw command the same table without reset and questions restores the settings.

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

  /// What becomes of an answer.
  enum Need { case banner, text, ok }

  var need: Need {
    switch self {
    case .reset: .banner
    case .identity, .chipIdentity: .text
    case .echoOff, .lineFeedsOff, .memoryOff, .spacesOff, .headersOn: .ok
    }
  }

  /// Whether it sets something that a reset or a raw command can have changed.
  var isSetting: Bool { need == .ok }

  var bytes: [UInt8] { Array(rawValue.utf8) }

  /// What is lost on an adapter that does not know it.
  var loss: String? {
    switch self {
    case .memoryOff: "the adapter does not support ATM0: the protocol is set without storing it"
    case .spacesOff: "the adapter does not support ATS0: replies are longer, polls slower"
    case .headersOn: "the adapter does not support ATH1: the responding ECU cannot be verified"
    default: nil
    }
  }
}

/// The commands that an adapter has left unanswered since the link came up. Twice is what it does not know: some hang instead of
/// saying `?`, and are set up again without it. One that it answers after all is forgotten.
struct Unanswered: Sendable {
  /// What an adapter can do without, by the beginning of the command.
  private static let dispensable =
    SetupStep.allCases.filter { $0 != .reset }.map(\.rawValue) + ["ATCRA", "ATAR", "ATAT", "ATST", "ATDPN", "ATRV"]
  private var times: [String: Int] = [:]

  private static func name(of command: some Sequence<UInt8>) -> String? {
    let command = Array(command)
    return dispensable.first { command.starts(with: $0.utf8) }
  }

  /// Nothing came. True where it will not be sent any more.
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

/// What setting up has found out about an adapter. It counts for one connection.
struct AdapterTraits: Sendable {
  /// Commands answered with `?`.
  private(set) var missing: Set<SetupStep> = []
  /// It can hear one controller alone.
  private(set) var hasFilter = true
  /// It can be told to learn how long to wait, or how long.
  private(set) var hasAdaptiveTiming = true
  private(set) var hasTimeout = true
  /// It tells which bus it has found.
  private(set) var namesBus = true
  /// It tells the voltage at the plug.
  private(set) var hasVoltage = true
  /// It knows low power.
  private(set) var canSleep = true
  /// It is an STN chip, which takes whom to ask with the question (ST PX).
  private(set) var takesHeader = false
  /// Of such a question's answer it counts frames, not messages.
  private(set) var countsFrames = false
  private(set) var names: [String] = []

  static let filterLoss = "the adapter does not support ATCRA: responses of other ECUs are not filtered out"

  init(_ unanswered: Unanswered = Unanswered()) {
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

  /// An identity in the adapter's own words.
  mutating func isCalled(_ name: String, by step: SetupStep) {
    if step == .chipIdentity { takesHeader = name.hasPrefix("STN") }
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
enum SetupAnswer: Equatable {
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
      if step.need == .text { traits.isCalled(printable(name, limit: 60), by: step) }
      self = .done
    case .ok: self.init(statuses)
    }
  }

  /// Judges the reply to any setting.
  init(_ reply: ArraySlice<UInt8>) {
    self.init(lines(of: reply.filter { $0 < 0x80 }).map { if case .status(let status) = ELMLine($0) { status } else { nil } })
  }

  private init(_ statuses: [ELMStatus?]) {
    self = statuses.last == .ok ? .done : statuses.contains(.notUnderstood) ? .unknownCommand : .nonsense
  }
}
