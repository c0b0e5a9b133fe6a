// A question a person asks the vehicle or the adapter between two polls: what may be asked, which header and filter it
// needs, and the commands that put the polling's own back. It never lets a line end, a prompt or anything but plain
// ASCII into the dialogue, and nothing that could change the vehicle unless the owner allowed it.

struct OBDQuery: Sendable {
  /// One command of the script.
  enum Step: Equatable, Sendable {
    /// Bus, header or filter for the question; must be acknowledged.
    case prepare(Aim.Step)
    /// The question at this place of `texts`.
    case ask(Int)
    /// Puts a setting back; must be acknowledged.
    case restore([UInt8])

    var isQuestion: Bool { if case .ask = self { true } else { false } }
  }

  /// What the answers are to become.
  enum Purpose: Sendable {
    /// What was answered, as it is.
    case answer
    /// What several questions come to.
    case survey(any Survey)
  }

  let id: CommandID
  /// The questions without their carriage returns; one, but for what asks several services.
  var texts: [[UInt8]]
  /// What the answers are to become.
  var purpose = Purpose.answer
  var survey: (any Survey)? { if case .survey(let survey) = purpose { survey } else { nil } }
  /// The service asked for; nil for a command of the adapter itself.
  let service: UInt8?
  /// The CAN identifier to ask, or nil where none was given.
  let header: CANIdentifier?
  /// A command of the adapter beyond the four harmless ones: it may have changed any setting.
  let isRaw: Bool
  private(set) var script: [Step] = []
  /// How the adapter is set when the question is asked.
  private(set) var aim: Aim?
  /// The command of the script that is in flight or next.
  var position = 0
  /// The controller takes its time: the adapter is to wait.
  var isPatient = false
  /// Somebody waits for the result.
  var isWanted = true

  static let argumentNames = (request: "request", header: "header")
  /// Services of ISO 15031 and ISO 14229 that change nothing in a car.
  static let readServices: Set<UInt8> = [0x01, 0x02, 0x03, 0x06, 0x07, 0x09, 0x0A, 0x19, 0x1A, 0x21, 0x22]
  private static let questions: Set<String> = ["ATI", "ATRV", "ATDPN", "STI"]
  private static let maxRawLength = 64

  /// Reads the arguments of the action, or says what is wrong with them.
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
    texts = [text]
    guard !text.isEmpty, text.count <= Self.maxRawLength else {
      throw .invalid(argument: Self.argumentNames.request, "the request must have 1 to \(Self.maxRawLength) characters, as in 010C")
    }
    let word = String(decoding: text, as: UTF8.self)
    if text.count >= 2, text.allSatisfy(isHexDigit) {
      let service = hexValue(text[0]) << 4 | hexValue(text[1])
      // Seven bytes are what one frame takes; an odd digit is the number of frames to wait for.
      guard text.count <= 15 else {
        throw .invalid(argument: Self.argumentNames.request, "\(word) is too long: a request has at most 7 bytes")
      }
      guard service != 0x04 else { throw Self.clears }
      guard allowRaw || Self.readServices.contains(service) else { throw Self.notAllowed("service \(spacedHex([service]))") }
      self.service = service
      isRaw = false
    } else {
      guard allowRaw || Self.questions.contains(word) else {
        if word.hasPrefix("AT") || word.hasPrefix("ST") { throw Self.notAllowed(word) }
        throw .invalid(
          argument: Self.argumentNames.request,
          "\(word) is not a request; write hex digits, as in 010C, or one of \(Self.questions.sorted().joined(separator: ", "))")
      }
      try Self.refuseHidden(text, word)
      service = nil
      isRaw = !Self.questions.contains(word)
    }
    header = try Self.header(in: arguments)
    if header != nil && service == nil {
      throw .invalid(argument: Self.argumentNames.header, "a header is only for requests to the vehicle, not for \(word); leave it out")
    }
  }

  /// Several questions that come to one report.
  init(_ id: CommandID, _ survey: any Survey) {
    self.id = id
    texts = survey.questions.map { hexText($0) }
    purpose = .survey(survey)
    (service, header, isRaw) = (survey.questions.first?.first, nil, false)
  }

  private static let clears = CommandError.refused(
    code: "raw-not-allowed", "04 clears trouble codes unread; use dtc-clear, which stores them first")

  /// Service 04 in what an adapter sends for a command of its own: STPX's data, what wakes a K-line behind three bytes of header, and,
  /// without the adapter's formatting, any request whose second byte it is, polling's own among them. Facts: ELM327DSH, AT WM and
  /// AT CAF; STN1100 FRPM, STPX.
  private static func refuseHidden(_ text: [UInt8], _ word: String) throws(CommandError) {
    if word.hasPrefix("ATCAF0") {
      throw .refused(code: "raw-not-allowed", "ATCAF0 changes the meaning of every request: 0104 becomes service 04; leave it out")
    }
    if word.hasPrefix("ATWM"), text.dropFirst(10).starts(with: "04".utf8) { throw clears }
    guard word.hasPrefix("STPX") else { return }
    for field in text.dropFirst(4).split(separator: UInt8(ascii: ",")) {
      if field.starts(with: "D:04".utf8) { throw clears }
      if field.starts(with: "L:".utf8) {
        throw .invalid(argument: argumentNames.request, "L: sends the next command as data; give the data here, as in D:0104")
      }
    }
  }

  private static func notAllowed(_ what: String) -> CommandError {
    .refused(code: "raw-not-allowed", "\(what) is not a read request; set allow-raw = true for this device to allow it")
  }

  private static func header(in arguments: [String: Value]) throws(CommandError) -> CANIdentifier? {
    guard let value = arguments[argumentNames.header] else { return nil }
    if case .string(let text) = value, let identifier = CANIdentifier(text) { return identifier }
    throw .invalid(argument: argumentNames.header, "a header is a CAN identifier of 3 or 8 hex digits, as in 7E4 or 18DA10F1")
  }

  /// Whether a message answers it: the service asked for, and the identifier where there is one; not a late answer to
  /// another question.
  func isAnswered(by message: ArraySlice<UInt8>) -> Bool {
    let text = texts[0]
    guard let service, let first = message.first else { return false }
    if first == 0x7F { return message.dropFirst().first == service }
    let echoed = service == 0x22 ? 2 : service == 0x21 || service == 0x1A ? 1 : 0
    let asked = stride(from: 2, to: min(2 + 2 * echoed, text.count - 1), by: 2).map { hexValue(text[$0]) << 4 | hexValue(text[$0 + 1]) }
    return first == service &+ 0x40 && message.dropFirst().starts(with: asked)
  }

  /// The command that is due, or nil when all is done.
  var step: Step? { position < script.count ? script[position] : nil }

  /// It as it goes out, carriage return included.
  var command: [UInt8] {
    switch step {
    case .prepare(let step): step.bytes + [carriageReturn]
    case .restore(let bytes): bytes + [carriageReturn]
    case .ask(let place): texts[place] + [carriageReturn]
    case nil: []
    }
  }

  /// The question itself is still to be answered.
  var isPending: Bool { position <= (script.lastIndex { $0.isQuestion } ?? 0) }
  var isRestoring: Bool { if case .restore = step { true } else { false } }

  /// The next command does the same as this one in another way.
  var hasOtherWay: Bool {
    guard position + 1 < script.count, case .prepare(.instead) = script[position + 1] else { return false }
    return true
  }

  /// The command was taken; another way of it is not needed.
  mutating func prepared() { position += hasOtherWay ? 2 : 1 }

  /// Leaves out what is left of the question.
  mutating func skipToRestore() {
    while step != nil, !isRestoring { position += 1 }
  }

  /// What is tuned is tuned to the controller that is polled. Many are heard out; one that clears its codes may take its time.
  private func timing(of target: Target, _ home: Aim) -> ReplyTiming {
    if isPatient || survey is CodeClearing { return .patient }
    return target.reply == nil ? .thorough : target == home.target ? home.timing : .initial
  }

  /// It may be asked again by ourselves: it changes nothing in a car.
  func isHarmless(_ place: Int) -> Bool {
    let text = texts[place]
    return text.count >= 2 && text.allSatisfy(isHexDigit) && Self.readServices.contains(hexValue(text[0]) << 4 | hexValue(text[1]))
  }

  /// Writes the script of the question at this place, for an adapter as it is set up now: who is polled is at `home`.
  mutating func prepare(for traits: AdapterTraits, aimedAt aim: Aim?, home: Aim, from place: Int = 0) {
    guard let service else {
      self.aim = isRaw ? nil : aim
      return script = [.ask(place)] + (isRaw ? traits.settings.map { .restore($0.bytes) } : [])
    }
    // The services of the emission standard are asked of all controllers, the maker's own of the one we poll.
    let usual = service <= 0x0A || survey != nil ? home.bus.everybody : home.target ?? .unaddressed
    let target = header.map { Target($0) } ?? survey?.target(of: place) ?? usual
    let there = Aim(bus: home.bus.carrying(target), target: target, timing: timing(of: target, home))
    script = there.steps(from: aim, traits).map { .prepare($0) } + [.ask(place)]
    position = 0
    self.aim = there
  }
}
