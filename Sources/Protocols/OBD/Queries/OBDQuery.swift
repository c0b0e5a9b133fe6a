// A query to the vehicle or the adapter between two polls: validation, addressing, and the commands that restore the settings. It passes
// only ASCII without line ends or prompts to the adapter and, unless allow-raw is set, nothing that could change the state of the vehicle.

struct OBDQuery: Sendable {
  /// One command of the script, the sequence of adapter commands for one request.
  enum Step: Equatable, Sendable {
    /// Sets protocol, header or filter; must be acknowledged.
    case prepare(ECUAddressing.Step)
    /// The request at this index of `requestStrings`.
    case request(Int)
    /// Restores a setting; must be acknowledged.
    case restore([UInt8])

    var isRequest: Bool { if case .request = self { true } else { false } }
  }

  /// The kind of result.
  enum Purpose: Sendable {
    /// The responses, one row each.
    case answer
    /// The report of a multi-ECU query.
    case multiECU(any MultiECUQuery)
  }

  let id: CommandID
  /// The text of each request, without carriage return. Only a multi-ECU query has more than one.
  private(set) var requestStrings: [[UInt8]]
  /// The kind of result.
  private(set) var purpose = Purpose.answer
  var multiECU: (any MultiECUQuery)? { if case .multiECU(let query) = purpose { query } else { nil } }
  /// The service; nil for a command to the adapter itself.
  let service: UInt8?
  /// The CAN identifier of the ECU, or nil if none was given.
  let header: Target?
  /// Whether it is an adapter command other than ATI, ATRV, ATDPN and STI, which may change any setting.
  let isRaw: Bool
  private(set) var script: [Step] = []
  /// The addressing when the request is sent.
  private(set) var addressing: ECUAddressing?
  /// The index in `script` of the command that is in flight or next.
  private(set) var position = 0
  /// Whether the adapter waits longer, because an ECU has reported "response pending".
  private(set) var usesLongTimeout = false
  /// Whether the client still waits for the result.
  private(set) var hasClient = true

  static let argumentNames = (request: "request", header: "header")
  /// Read-only services of ISO 15031 and ISO 14229.
  static let readServices: Set<UInt8> = [0x01, 0x02, 0x03, 0x06, 0x07, 0x09, 0x0A, 0x19, 0x1A, 0x21, 0x22]
  private static let readCommands: Set<String> = ["ATI", "ATRV", "ATDPN", "STI"]
  private static let maxRawLength = 64

  /// Parses the arguments of the action. Throws if they are invalid.
  init(_ id: CommandID, _ arguments: [String: Value], allowRaw: Bool) throws(CommandError) {
    self.id = id
    guard case .string(let request)? = arguments[Self.argumentNames.request] else {
      throw .invalid(argument: Self.argumentNames.request, "request is missing; give one, as in 010C")
    }
    guard request.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != prompt }) else {
      throw .invalid(
        argument: Self.argumentNames.request, "invalid character in the request; use ASCII letters and digits")
    }
    let text = request.utf8.filter { $0 != space }.map { $0 >= 0x61 && $0 <= 0x7A ? $0 - 0x20 : $0 }
    requestStrings = [text]
    guard !text.isEmpty, text.count <= Self.maxRawLength else {
      throw .invalid(argument: Self.argumentNames.request, "the request must have 1 to \(Self.maxRawLength) characters, as in 010C")
    }
    let word = String(decoding: text, as: UTF8.self)
    if text.count >= 2, text.allSatisfy(isHexDigit) {
      let service = hexValue(text[0]) << 4 | hexValue(text[1])
      // A single frame holds seven bytes. If the number of digits is odd, the last digit is the frame count.
      guard text.count <= 15 else {
        throw .invalid(argument: Self.argumentNames.request, "\(word) is too long: a request has at most 7 bytes")
      }
      guard service != 0x04 else { throw Self.clearsCodes }
      guard allowRaw || Self.readServices.contains(service) else { throw Self.notAllowed("service \(spacedHex([service]))") }
      self.service = service
      isRaw = false
    } else {
      guard allowRaw || Self.readCommands.contains(word) else {
        if word.hasPrefix("AT") || word.hasPrefix("ST") { throw Self.notAllowed(word) }
        throw .invalid(
          argument: Self.argumentNames.request,
          "\(word) is not a request; write hex digits, as in 010C, or one of \(Self.readCommands.sorted().joined(separator: ", "))")
      }
      try Self.rejectHiddenClear(text, word)
      service = nil
      isRaw = !Self.readCommands.contains(word)
    }
    header = try Self.header(in: arguments)
    if header != nil && service == nil {
      throw .invalid(argument: Self.argumentNames.header, "a header is only for requests to the vehicle, not for \(word); leave it out")
    }
  }

  /// Creates the query that sends the requests of a multi-ECU query.
  init(_ id: CommandID, _ query: any MultiECUQuery) {
    self.id = id
    requestStrings = query.requests.map { hexText($0) }
    purpose = .multiECU(query)
    (service, header, isRaw) = (query.requests.first?.first, nil, false)
  }

  /// Replaces the multi-ECU query after it has processed a reply, which may have appended requests.
  mutating func update(_ query: any MultiECUQuery) {
    purpose = .multiECU(query)
    requestStrings = query.requests.map { hexText($0) }
  }

  private static let clearsCodes = CommandError.refused(
    code: .rawNotAllowed, "04 clears trouble codes unread; use vehiclectl dtc clear, which stores them first")

  /// Throws if an adapter command would send service 04 (clear trouble codes): in the data of STPX, or in the K-line wake-up message after
  /// its three header bytes. Rejects AT CAF0 too: without automatic formatting, any request with 04 as its second byte becomes service 04.
  /// Source: ELM327 data sheet, AT WM and AT CAF; STN1100 FRPM, STPX.
  private static func rejectHiddenClear(_ text: [UInt8], _ word: String) throws(CommandError) {
    if word.hasPrefix("ATCAF0") {
      throw .refused(code: .rawNotAllowed, "ATCAF0 changes the meaning of every request: 0104 becomes service 04; leave it out")
    }
    if word.hasPrefix("ATWM"), text.dropFirst(10).starts(with: "04".utf8) { throw clearsCodes }
    guard word.hasPrefix("STPX") else { return }
    for field in text.dropFirst(4).split(separator: UInt8(ascii: ",")) {
      if field.starts(with: "D:04".utf8) { throw clearsCodes }
      if field.starts(with: "L:".utf8) {
        throw .invalid(argument: argumentNames.request, "L: sends the next command as data; give the data here, as in D:0104")
      }
    }
  }

  /// The error for a command to the adapter if the link leads to none that takes commands.
  static let needsELM = CommandError.refused(
    code: .notSupported, "only an ELM327 adapter takes commands; over a CAN adapter, send a request in hex digits, as in 010C")

  private static func notAllowed(_ what: String) -> CommandError {
    .refused(code: .rawNotAllowed, "\(what) is not a read request; set allow-raw = true for this device to allow it")
  }

  private static func header(in arguments: [String: Value]) throws(CommandError) -> Target? {
    guard let value = arguments[argumentNames.header] else { return nil }
    if case .string(let text) = value, let target = Target(text) { return target }
    throw .invalid(
      argument: argumentNames.header,
      "a header is a CAN identifier of 3 or 8 hex digits, as in 7E4 or 18DA10F1, and an address byte if the ECU needs it, as in 6F1/07")
  }

  /// Whether a message answers the query: same service and identifier, not a late response to another request.
  func isAnswered(by message: ArraySlice<UInt8>) -> Bool {
    let text = requestStrings[0]
    guard let service, let first = message.first else { return false }
    if first == 0x7F { return message.dropFirst().first == service }
    let identifierLength = service == 0x22 ? 2 : service == 0x21 || service == 0x1A ? 1 : 0
    let identifier = stride(from: 2, to: min(2 + 2 * identifierLength, text.count - 1), by: 2)
      .map { hexValue(text[$0]) << 4 | hexValue(text[$0 + 1]) }
    return first == service &+ 0x40 && message.dropFirst().starts(with: identifier)
  }

  /// The next command, or nil when done.
  var step: Step? { position < script.count ? script[position] : nil }

  /// The command as sent, carriage return included.
  var command: [UInt8] {
    switch step {
    case .prepare(let step): step.bytes + [carriageReturn]
    case .restore(let bytes): bytes + [carriageReturn]
    case .request(let index): requestStrings[index] + [carriageReturn]
    case nil: []
    }
  }

  /// The command to send next, or nil when done.
  var adapterCommand: AdapterCommand? {
    guard step != nil else { return nil }
    guard service != nil, case .request(let index) = step, let addressing else { return .text(command) }
    let digits = requestStrings[index]
    // If the number of digits is odd, the last one is the frame count.
    let bytes = stride(from: 1, to: digits.count, by: 2).map { hexValue(digits[$0 - 1]) << 4 | hexValue(digits[$0]) }
    return .request(AdapterRequest(addressing: addressing, bytes: bytes, text: command))
  }

  /// Whether the request has not been answered yet.
  var isPending: Bool { position <= (script.lastIndex { $0.isRequest } ?? 0) }
  var isRestoring: Bool { if case .restore = step { true } else { false } }

  /// Whether the next command is the fallback for this one.
  var hasFallback: Bool {
    guard position + 1 < script.count, case .prepare(.fallback) = script[position + 1] else { return false }
    return true
  }

  /// Continues after the adapter has accepted a command. Skips the command's fallback.
  mutating func advancePastFallback() { position += hasFallback ? 2 : 1 }

  /// Continues with the next command of the script.
  mutating func advance() { position += 1 }

  /// Discards the result, because the client has disconnected.
  mutating func cancel() { hasClient = false }

  /// Repeats the request with the long timeout, because its response is pending.
  mutating func repeatWithLongTimeout(_ index: Int, for session: some AdapterDialogue, fastAddressing: ECUAddressing) {
    usesLongTimeout = true
    prepare(for: session, fastAddressing: fastAddressing, at: index)
  }

  /// Continues with the commands that restore the settings.
  mutating func skipToRestore() {
    while step != nil, !isRestoring { position += 1 }
  }

  /// The timing for a request. Tuned timing applies to the ECU of the fast request only. Functional requests wait for the full timeout.
  /// Clearing can take a long time.
  private func timing(of target: Target, _ fastAddressing: ECUAddressing) -> ReplyTiming {
    if usesLongTimeout || multiECU is CodeClearing { return .responsePending }
    return target.reply == nil ? .functional : target == fastAddressing.target ? fastAddressing.timing : .initial
  }

  /// Whether the request is read-only and therefore may be repeated automatically.
  func isRepeatable(_ index: Int) -> Bool {
    let text = requestStrings[index]
    return text.count >= 2 && text.allSatisfy(isHexDigit) && Self.readServices.contains(hexValue(text[0]) << 4 | hexValue(text[1]))
  }

  /// Builds the script of the request at this index; `fastAddressing` is the addressing of the fast request (FastPoll.swift).
  mutating func prepare(for session: some AdapterDialogue, fastAddressing: ECUAddressing, at index: Int = 0) {
    guard let service else {
      addressing = isRaw ? nil : session.addressing
      return script = [.request(index)] + (isRaw ? session.traits.settingsToRestore.map { .restore($0.bytes) } : [])
    }
    // Services of SAE J1979 go to all ECUs, manufacturer-specific ones to the ECU of the fast request.
    let defaultTarget = service <= 0x0A || multiECU != nil ? fastAddressing.bus.allECUs : fastAddressing.target ?? .unaddressed
    let target = header ?? multiECU?.target(of: index) ?? defaultTarget
    let destination = ECUAddressing(bus: fastAddressing.bus.adapted(to: target), target: target, timing: timing(of: target, fastAddressing))
    script = session.steps(to: destination).map { .prepare($0) } + [.request(index)]
    position = 0
    addressing = destination
  }
}
