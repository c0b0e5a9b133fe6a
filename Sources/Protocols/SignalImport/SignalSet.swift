// OBDb's signal sets (https://github.com/OBDb, signalsets/v3): commands with a header, a request and a period, and in each the signals
// that its answer holds, as runs of bits. Read without trust. What a signal set says of how the car is to be prepared (sessions,
// extended addresses) is nothing that may be done here unasked: such commands are left out.

enum SignalSet {
  static func read(_ text: [UInt8], into result: inout SignalImport) throws(ValueError) {
    guard let root = JSONNode(foreign: text) else { throw ValueError("it begins like JSON and is none; download it again") }
    guard let commands = root["commands"], commands.kind == .array else {
      throw ValueError("it is no signal set of OBDb: it has no list \"commands\"; name one, as signalsets/v3/default.json of a car")
    }
    if let session = root["diagnosticLevel"]?.text {
      result.note("diagnosticLevel", "the set is meant for diagnostic session \(visible(session, limit: 8)), which is never opened here")
    }
    if let synthetics = root["synthetics"] {
      for one in synthetics.elements { result.leaveOut(one.shown("id"), "it is computed from other signals") }
    }
    for (index, command) in commands.elements.enumerated() { read(command, number: index + 1, into: &result) }
  }

  private static func read(_ command: JSONNode, number: Int, into result: inout SignalImport) {
    let signals = command["signals"]?.elements ?? []
    let frame: ImportedSignal
    do throws(ValueError) {
      frame = try self.frame(of: command)
    } catch {
      if signals.isEmpty { return result.leaveOut("command \(number)", error.description) }
      for signal in signals { result.leaveOut(signal.shown("id"), error.description) }
      return
    }
    if signals.isEmpty { result.leaveOut("command \(number)", "it has no signals") }
    for signal in signals {
      let place = signal.shown("id")
      do throws(ValueError) {
        guard let id = signal["id"]?.text else { throw ValueError("it has no id") }
        var made = try SignalField(signal).signal(frame)
        made.help = visible([signal["name"]?.text ?? id, made.help ?? ""].filter { !$0.isEmpty }.joined(separator: ": "), limit: 200)
        result.add(made, id: id, place: place)
        if let words = SignalField.doubt(signal) { result.note(place, words) }
      } catch {
        result.leaveOut(place, error.description)
      }
    }
  }

  /// What the signals of a command have in common.
  private static func frame(of command: JSONNode) throws(ValueError) -> ImportedSignal {
    guard command.kind == .object else { throw ValueError("it is no command") }
    guard command["eax"] == nil else { throw ValueError("it needs an extended address, which is not supported") }
    guard command["din"] == nil else { throw ValueError("it needs a diagnostic session, which is never opened here") }
    if let kind = command["proto"]?.text, kind.hasPrefix("9141") { throw ValueError("it is for ISO 9141, which has no CAN identifiers") }
    guard let services = command["cmd"], services.kind == .object, let service = services.keys.first, services.keys.count == 1,
      let parameter = services[service]?.text
    else { throw ValueError("it asks for nothing that is known: cmd must name a service and what to ask of it") }
    let header = try header(of: command)
    var frame = ImportedSignal(request: service + parameter, header: header.text, value: "")
    if let reply = try reply(of: command, to: header), reply != header.reply { frame.reply = reply.text }
    if let seconds = command["freq"]?.float, seconds > 0 { frame.period = min(max(seconds, 0.05), 3600) }
    if let years = years(command["filter"]) { frame.comments.append("for model years \(years)") }
    return frame
  }

  /// `7E4`, or the two bytes between priority and tester of a 29-bit identifier: `DA10`, `DB33`.
  private static func header(of command: JSONNode) throws(ValueError) -> CANIdentifier {
    guard let digits = command["hdr"]?.text else { throw ValueError("it has no header") }
    let tester = command["tst"]?.text ?? "F1"
    let whole = digits.utf8.count == 4 ? (command["pri"]?.text ?? "18") + digits + tester : digits
    guard let header = CANIdentifier(whole) else { throw ValueError("its header \(visible(digits, limit: 20)) is no CAN identifier") }
    return header
  }

  private static func reply(of command: JSONNode, to header: CANIdentifier) throws(ValueError) -> CANIdentifier? {
    guard let digits = command["rax"]?.text else { return nil }
    let last = digits.utf8.suffix(2)
    let whole = header.isLong && digits.utf8.count < 8 ? "18DAF1" + String(decoding: last, as: UTF8.self) : digits
    guard digits.utf8.count >= 2, let reply = CANIdentifier(whole), reply.isLong == header.isLong else {
      throw ValueError("its receive address \(visible(digits, limit: 20)) is no CAN identifier")
    }
    return reply
  }

  /// Model years as a person says them. Where `from` is the later one, the years between the two are left out.
  private static func years(_ filter: JSONNode?) -> String? {
    guard let filter else { return nil }
    var words: [String] = []
    switch (filter["from"]?.whole, filter["to"]?.whole) {
    case (let from?, let to?) where from <= to: words.append("\(from) to \(to)")
    case (let from, let to):
      if let to { words.append("until \(to)") }
      if let from { words.append("from \(from) on") }
    }
    words += filter["years"]?.elements.prefix(30).compactMap { $0.whole.map(String.init) } ?? []
    return words.isEmpty ? nil : words.joined(separator: ", ")
  }
}

extension JSONNode {
  /// A member's text for a person, or what stands for it.
  fileprivate func shown(_ key: String) -> String {
    let text = visible(kind == .object ? self[key]?.text ?? "" : "", limit: 80)
    return text.isEmpty ? "a signal without \(key)" : text
  }
}
