// The trouble codes of a vehicle as a person reads them: stored, pending and permanent ones together, by controller, each once with its
// states. That a service has no answer means that it has no code, or that the car does not know the service: which, nobody can tell.
// Facts: SAE J1979, services 03, 07 and 0A.

struct CodeList: Sendable {
  /// The services that are asked, in this order.
  static let services: [UInt8] = [0x03, 0x07, 0x0A]
  private static let states = ["stored", "pending", "permanent"]
  static let columns = ["ecu", "code", "state", "meaning"]

  private struct Entry: Sendable {
    let source: UInt32?
    let code: TroubleCode
    var states: [String]
  }

  private var entries: [Entry] = []

  /// Adds what answered the service at this place, or says why it cannot be read.
  mutating func add(_ reader: CANReader, service place: Int) -> String? {
    let service = Self.services[place] + 0x40
    var isAnswered = false
    for message in reader.messages {
      let bytes = reader.bytes(of: message)
      // A controller that refuses has none to tell.
      if bytes.first == 0x7F { isAnswered = true }
      guard bytes.first == service else { continue }
      isAnswered = true
      switch TroubleCode.read(bytes) {
      case .broken(let reason): return reason
      case .codes(let codes):
        for code in codes { add(code, Self.states[place], from: message.source) }
      }
    }
    return isAnswered ? nil : "the reply answers another request"
  }

  private mutating func add(_ code: TroubleCode, _ state: String, from source: UInt32?) {
    if let index = entries.firstIndex(where: { $0.source == source && $0.code == code }) {
      if !entries[index].states.contains(state) { entries[index].states.append(state) }
    } else {
      entries.append(Entry(source: source, code: code, states: [state]))
    }
  }

  /// By controller, then by code.
  var report: Report {
    let sorted = entries.sorted { ($0.source ?? 0, $0.code) < ($1.source ?? 0, $1.code) }
    let rows = sorted.map { entry in
      [entry.source.map { CANIdentifier($0).text } ?? "", entry.code.text, entry.states.joined(separator: ", "), entry.code.meaning ?? ""]
    }
    return rows.isEmpty
      ? Report(text: "no trouble codes: none stored, pending or permanent") : Report(columns: Self.columns, rows: rows)
  }
}
