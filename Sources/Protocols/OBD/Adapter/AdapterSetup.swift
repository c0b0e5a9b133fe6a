// The commands that initialise the adapter, their replies, and the commands that an adapter turns out not to support. The commands for
// protocol and header are in `ECUAddressing`. Nothing is written to the EEPROM of the adapter: ATM0 precedes ATSP, and an adapter without
// ATM0 receives ATTP instead.

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

  /// The reply that a step expects.
  enum ExpectedReply { case banner, text, ok }

  var expectedReply: ExpectedReply {
    switch self {
    case .reset: .banner
    case .identity, .chipIdentity: .text
    case .echoOff, .lineFeedsOff, .memoryOff, .spacesOff, .headersOn: .ok
    }
  }

  /// Whether the step changes a setting, which a reset or a raw command can undo.
  var isSetting: Bool { expectedReply == .ok }

  var bytes: [UInt8] { Array(rawValue.utf8) }

  /// The message that states what is lost if the adapter does not support the command; nil if nothing is.
  var loss: String? {
    switch self {
    case .memoryOff: "the adapter does not support ATM0: the protocol is set without storing it"
    case .spacesOff: "the adapter does not support ATS0: replies are longer and polls are slower"
    case .headersOn: "the adapter does not support ATH1: the responding ECU cannot be verified"
    default: nil
    }
  }
}

/// The commands that have had no reply since the link came up. A command is disabled after two missing replies, because some clones hang
/// instead of replying `?`. A reply resets the command's count.
struct UnansweredCommands: Sendable {
  /// The prefixes of the commands that can be disabled.
  private static let optional =
    SetupStep.allCases.filter { $0 != .reset }.map(\.rawValue) + ["ATCRA", "ATAR", "ATAT", "ATST", "ATDPN", "ATRV"]
  private var missingReplies: [String: Int] = [:]

  private static func name(of command: some Sequence<UInt8>) -> String? {
    let command = Array(command)
    return optional.first { command.starts(with: $0.utf8) }
  }

  /// Counts a missing reply. Returns true if this disables the command.
  mutating func recordMissingReply(to command: some Sequence<UInt8>) -> Bool {
    guard let name = Self.name(of: command) else { return false }
    missingReplies[name, default: 0] += 1
    return missingReplies[name] == 2
  }

  mutating func recordReply(to command: some Sequence<UInt8>) {
    guard !missingReplies.isEmpty, let name = Self.name(of: command) else { return }
    missingReplies[name] = nil
  }

  func isDisabled(_ name: String) -> Bool { missingReplies[name, default: 0] >= 2 }
}

/// The capabilities of an adapter, as learned since the link came up.
struct AdapterTraits: Sendable {
  /// The setup steps that it does not support.
  private(set) var unsupported: Set<SetupStep> = []
  /// Whether it can filter for the responses of one ECU.
  private(set) var hasFilter = true
  /// Whether it supports adaptive timing (AT AT).
  private(set) var hasAdaptiveTiming = true
  /// Whether its timeout can be set (AT ST).
  private(set) var hasTimeoutSetting = true
  /// Whether it reports the detected protocol.
  private(set) var reportsProtocol = true
  /// Whether it reports the voltage at the OBD connector.
  private(set) var reportsVoltage = true
  /// Whether it supports low power mode.
  private(set) var canSleep = true
  /// Whether a request can carry its header (STPX), as on STN chips.
  private(set) var supportsSTPX = false
  /// Whether the expected number of responses in STPX (`R:`) counts frames instead of messages.
  private(set) var stpxCountsFrames = false
  /// Whether it is a CAN interface: every request carries its address, there are no commands and no frame count, and nothing measures the
  /// voltage.
  private(set) var isFrameInterface = false
  /// The bit rate of a CAN interface in bit/s, if it is known.
  private(set) var bitRate: Int?
  /// Its identification strings.
  private(set) var names: [String] = []

  static let filterLoss = "the adapter does not support ATCRA: responses of other ECUs are not filtered out"

  init(_ unanswered: UnansweredCommands = UnansweredCommands()) {
    unsupported = Set(SetupStep.allCases.filter { unanswered.isDisabled($0.rawValue) })
    hasFilter = !unanswered.isDisabled("ATCRA") && !unanswered.isDisabled("ATAR")
    (hasAdaptiveTiming, hasTimeoutSetting) = (!unanswered.isDisabled("ATAT"), !unanswered.isDisabled("ATST"))
    (reportsProtocol, reportsVoltage) = (!unanswered.isDisabled("ATDPN"), !unanswered.isDisabled("ATRV"))
  }

  /// The capabilities of a CAN interface with this name and bit rate in bit/s.
  static func frameInterface(_ name: String?, bitRate: Int?) -> AdapterTraits {
    var traits = AdapterTraits()
    traits.bitRate = bitRate
    traits.isFrameInterface = true
    (traits.reportsProtocol, traits.reportsVoltage, traits.canSleep, traits.hasTimeoutSetting) = (false, false, false, false)
    traits.names = name.map { [$0] } ?? []
    return traits
  }

  mutating func markUnsupported(_ step: SetupStep) { unsupported.insert(step) }
  mutating func markFilterUnsupported() { hasFilter = false }
  mutating func markVoltageUnsupported() { reportsVoltage = false }
  mutating func markLowPowerUnsupported() { canSleep = false }
  mutating func markSTPXUnsupported() { supportsSTPX = false }
  mutating func noteFrameCounting() { stpxCountsFrames = true }

  /// Adds the identification string that the adapter sent in a setup step.
  mutating func addName(_ name: String, from step: SetupStep) {
    if step == .chipIdentity { supportsSTPX = name.hasPrefix("STN") }
    if !name.isEmpty && !names.contains(name) { names.append(name) }
  }

  /// The displayed name: `ELM327 v1.5 (STN1110 v4.2.0)`.
  var name: String? {
    guard let first = names.first else { return nil }
    return names.count > 1 ? "\(first) (\(names.dropFirst().joined(separator: ", ")))" : first
  }

  /// The setup steps to repeat after a command that may have changed any setting.
  var settingsToRestore: [SetupStep] { SetupStep.allCases.filter { $0.isSetting && !unsupported.contains($0) } }
}

/// The result of a setup command.
enum SetupReply: Equatable {
  case done
  case unknownCommand
  case unreadable

  /// Evaluates the reply to a setup step, and adds an identification string to `traits`.
  init(to step: SetupStep, _ reply: ArraySlice<UInt8>, _ traits: inout AdapterTraits) {
    // Banners may contain noise from a chip that has just started.
    let lines = lines(of: reply.filter { $0 < 0x80 })
    let statuses = lines.map { line -> ELMStatus? in if case .status(let status) = ELMLine(line) { status } else { nil } }
    switch step.expectedReply {
    case .banner, .text:
      if step.expectedReply == .text && statuses.contains(.notUnderstood) { self = .unknownCommand; return }
      // A name is printable ASCII; at the wrong baud rate a reply consists of arbitrary bytes.
      let isName = { (line: [UInt8]) in line.count >= 3 && line.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }
      let name = zip(lines, statuses).first { isName($0.0) && ($0.1 == nil || $0.1 == .banner) }?.0
      let isPlain = reply.allSatisfy { $0 < 0x80 }
      guard let name, isPlain || name.starts(with: "ELM327".utf8) else {
        self = step.expectedReply == .text ? .unknownCommand : .unreadable
        return
      }
      if step.expectedReply == .text { traits.addName(printable(name, limit: 60), from: step) }
      self = .done
    case .ok: self.init(statuses)
    }
  }

  /// Evaluates the reply to a setting.
  init(_ reply: ArraySlice<UInt8>) {
    self.init(lines(of: reply.filter { $0 < 0x80 }).map { if case .status(let status) = ELMLine($0) { status } else { nil } })
  }

  private init(_ statuses: [ELMStatus?]) {
    self = statuses.last == .ok ? .done : statuses.contains(.notUnderstood) ? .unknownCommand : .unreadable
  }
}
