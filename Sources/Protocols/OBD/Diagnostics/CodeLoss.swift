// The data that clearing would erase: codes, freeze frames and readiness monitors; and whether the vehicle moves, checked last. Confirmed
// codes are not cleared while the vehicle moves or does not respond. Facts: SAE J1979 service 04, which resets everything except permanent
// codes.

struct CodeLoss: MultiECUQuery {
  static let columns = ["ecu", "what", "value", "state", "meaning"]

  /// The caller has confirmed the clearing.
  let isConfirmed: Bool
  private(set) var codes = CodeList()
  private(set) var frozen: [(source: UInt32?, code: TroubleCode)] = []
  /// The complete readiness monitors.
  private(set) var monitors: [(source: UInt32?, name: String)] = []
  private(set) var motion: Motion
  /// The ECUs that responded.
  private(set) var controllers: [UInt32?] = []
  private var isAsked = false
  /// The ECUs known from detection.
  private let known: [UInt32]

  init(isConfirmed: Bool, _ motion: Motion = Motion(), known: [UInt32] = []) {
    (self.isConfirmed, self.motion, self.known) = (isConfirmed, motion, known)
  }

  var questions: [[UInt8]] { codes.questions + [FreezeFrame.request(0x02), [0x01, 0x01]] + Motion.questions }

  mutating func take(_ answers: [ECUAnswer], _ place: Int) throws(Unreadable) {
    for answer in answers where !controllers.contains(answer.source) { controllers.append(answer.source) }
    controllers.sort { $0 ?? 0 < $1 ?? 0 }
    switch questions[place].prefix(2) {
    case [0x02, 0x02]: try takeFrames(answers)
    case [0x01, 0x01]: try takeMonitors(answers)
    case let question where question.count == 1: codes.take(answers, place)
    default: try motion.take(answers)
    }
    isAsked = place == questions.count - 1
  }

  private mutating func takeFrames(_ answers: [ECUAnswer]) throws(Unreadable) {
    for answer in try answers.told() {
      var frame = FreezeFrame()
      if let problem = frame.add(answer.bytes[...]) { throw Unreadable(problem) }
      if let code = frame.code { frozen.append((answer.source, code)) }
    }
  }

  private mutating func takeMonitors(_ answers: [ECUAnswer]) throws(Unreadable) {
    for answer in try answers.told() {
      let problem = StandardParameter.split(answer.bytes[...]) { number, data in
        guard number == 0x01 else { return }
        let complete = answer.bytes[data].withUnsafeBufferPointer { Readiness.monitors($0).filter(\.isComplete).map(\.name) }
        monitors += complete.map { (answer.source, $0) }
      }
      if let problem { throw Unreadable(problem) }
    }
  }

  var objection: CommandError? {
    if isAsked, controllers.isEmpty {
      return .refused(code: .noAnswer, "no ECU responds; switch the ignition on")
    }
    guard isConfirmed else { return nil }
    if let doubt = codes.doubts.first {
      return .refused(code: .badReply, "nothing cleared: cannot read everything that would be lost: \(doubt); try again")
    }
    let silent = known.filter { !controllers.contains($0) }.map { CANReader.name(of: $0) }
    if isAsked, !silent.isEmpty, !controllers.contains(nil) {
      return .refused(
        code: .noAnswer, "\(silent.joined(separator: ", ")) does not respond, and its codes would be lost unread; switch the ignition on")
    }
    return motion.refusal
  }

  var report: Report {
    let losable = codes.entries.filter { $0.states != [CodeList.permanent] }
    var rows = losable.map { [CANReader.name(of: $0.source), "code", $0.code.text, $0.stateText, $0.meaning] }
    rows += frozen.map { [CANReader.name(of: $0.source), "freeze frame", $0.code.text, "", "values when this code was stored"] }
    rows += monitors.map { [CANReader.name(of: $0.source), "readiness monitor", $0.name, "complete", ""] }
    var text = "also lost: test results, counters since the last clearing, and adaptation values of the ECUs"
    if !monitors.isEmpty { text += "\nreadiness monitors take days of driving to complete again; an emissions inspection requires them" }
    if let message = codes.permanentMessage { text += "\n\(message)" }
    for doubt in codes.doubts { text += "\n\(doubt)" }
    text += "\n" + (motion.objection ?? (motion.isKnown ? "the vehicle is stationary: \(motion.message)" : Self.unknownWords))
    return Report(text: text, columns: rows.isEmpty ? [] : Self.columns, rows: rows)
  }

  private static let unknownWords = "road speed and engine speed are unknown; make sure that the vehicle is stationary and its engine off"

  /// `7E8 P0133 (stored), P0420 (stored, permanent), freeze frame of P0133; 7E9 P0715 (stored)`
  var message: String {
    let parts = controllers.map { source in
      let told =
        codes.entries.filter { $0.source == source }.map { "\($0.code.text) (\($0.stateText))" }
        + frozen.filter { $0.source == source }.map { "freeze frame of \($0.code.text)" }
      return ECUAnswer.message(source, told.isEmpty ? "no code" : told.joined(separator: ", "))
    }
    return parts.joined(separator: "; ")
  }
}
