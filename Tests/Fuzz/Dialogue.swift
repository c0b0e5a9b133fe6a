// Fuzzes the OBD machine with an arbitrary ELM327 adapter. The machine never sends what is no valid command, and its buffers and queues
// are bounded. Built together with Sources/Protocols as one module, outside the package.

private struct OBDFuzzSession: FuzzSession {
  static let firstStep: UInt8 = 0x80
  static var steps: [FuzzStep<Self>] {
    linkSteps + [
      .withArgument { $0.request($1) }, .cancel, .step { $0.answerSetup() }, .step { $0.flood() }, .step { $0.give(.wake) }, .restore,
      .step { $0.stop() },
    ]
  }
  static let maxStringLength = 300
  static let storedKeys = ["request"]

  var state: FuzzState<OBDMachine>
  /// The bytes that the machine sent in response to the last input; empty if none.
  private var sent: [UInt8] = []

  init(options: UInt8) {
    let machine = OBDMachine(rate: [20, 0, 1000, 0.001][Int(options & 3)], allowRaw: options & 4 != 0, phase: Double(options >> 3) / 32)
    state = FuzzState(machine, now: options & 0x40 != 0 ? -3 * .second : 1)
  }

  mutating func prepare(for input: Input) { sent = [] }

  mutating func check(_ effect: Effect) {
    guard case .send(_, let bytes, _, _) = effect else { return }
    let isCommand = bytes.last == carriageReturn && bytes.dropLast().allSatisfy { $0 >= space && $0 < 0x7F && $0 != prompt }
    // A single space aborts what the adapter does.
    require(bytes == [space] || isCommand, "not a command: \(printable(bytes))")
    sent = bytes
  }

  func checkMachine() {
    let dialogue = state.machine.router.session.dialogue
    require(dialogue.reply.count <= ELMDialogue.maxReplyLength && dialogue.unexpectedText.count <= 256, "unbounded buffer of the dialogue")
    require(state.machine.router.clients.queries.count <= Queries.maxWaiting, "unbounded queue of queries")
  }

  /// A client sends the pending bytes as a request; the argument chooses a header.
  private mutating func request(_ argument: UInt8) {
    var arguments: [String: Value] = ["request": .string(String(decoding: state.takePending(), as: UTF8.self))]
    let headers = ["7E0", "18DA10F1", "7FF", "7DF", "1FFFFFFF", "7e4", "é"]
    if argument > 0 { arguments["header"] = .string(headers[Int(argument) % headers.count]) }
    perform(.run(action: 0, arguments: arguments))
  }

  /// Replies to all setup commands as a working adapter does.
  private mutating func answerSetup() {
    for _ in 0..<30 {
      if sent.isEmpty, state.machine.nextWake != nil { wake() }
      switch String(decoding: sent.dropLast(), as: UTF8.self) {
      case "ATZ", "ATI": reply("ELM327 v1.5")
      case "STI": reply("?")
      case let setting where setting.hasPrefix("AT"): reply("OK")
      case "" where state.machine.nextWake != nil: continue
      default: return
      }
    }
  }

  private mutating func reply(_ text: String) { give(.received(.main, Array("\(text)\r\r>".utf8))) }

  /// Delivers the pending bytes and repeats the last one; two floods exceed the maximum length of a reply.
  private mutating func flood() {
    guard let last = state.pending.last else { return }
    give(.received(.main, state.pending + Array(repeating: last, count: ELMDialogue.maxReplyLength * 2 / 3)))
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt { OBDFuzzSession.run(start, count) }
