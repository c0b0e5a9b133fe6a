// Whether an answer to 220101 or 2101 from 7E4 is the battery page of an electric Hyundai or Kia at all. Other makers have ECUs at that
// address which answer the same request with something else: read as a battery page that gives values such as 198 million kWh.

extension BMSPage {
  /// Through the inverter's voltage.
  private static let minCount = 53
  /// A captured page agrees in all of them; a battery that has just woken up, or a car with a field of its own, may not.
  private static let minAgreement = 4

  /// Whether fields that belong together agree: pack and cell voltages, the temperatures, the inverter behind the contactors, and both
  /// pairs of lifetime counters.
  static func isPlausible(_ data: UnsafeBufferPointer<UInt8>) -> Bool {
    guard data.count >= minCount else { return false }
    let voltage = Double(NumberLayout.u16.raw(data, 12)) / 10
    let (highest, lowest) = (Double(data[23]) / 50, Double(data[25]) / 50)
    let (warmest, coldest) = (NumberLayout.s8.raw(data, 14), NumberLayout.s8.raw(data, 15))
    let signs = [
      (40...1000).contains(voltage),
      lowest >= 1 && lowest <= highest && highest <= 4.5 && (10...260).contains(voltage / lowest),
      coldest >= -40 && coldest <= warmest && warmest <= 85 && warmest - coldest <= 40,
      Double(NumberLayout.u16.raw(data, 51)) <= voltage + 20,
      isMean(voltage, data, charge: 30, energy: 38) && isMean(voltage, data, charge: 34, energy: 42),
    ]
    return signs.count { $0 } >= minAgreement
  }

  /// Tenths of kWh over tenths of Ah, in thousands, are the voltage at which the pack was charged or discharged in its life: near the one
  /// that it has now.
  private static func isMean(_ voltage: Double, _ data: UnsafeBufferPointer<UInt8>, charge: Int, energy: Int) -> Bool {
    let (charge, energy) = (NumberLayout.u32.raw(data, charge), NumberLayout.u32.raw(data, energy))
    return charge > 0 && (voltage * 0.6...voltage * 1.4).contains(Double(energy) * 1000 / Double(charge))
  }
}

extension OBDMachine {
  private static let foreignLimit = 3

  /// Whether the page is to be held against what a battery says: unless a person has named the vehicle, before it is first believed on
  /// this connection and after each silence.
  var doubtsPage: Bool { choice == .auto && !streaks.isSettled && request.isPage }

  /// What answered is no battery page. A vehicle that had one before may have just woken up; any other is asked something else.
  mutating func foreignPage(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    state = .polling
    pace.failed(at: now)
    dialogue.isInStep()
    keepBadReply(dialogue.reply, &effects)
    let words = "the response to \(request.rawValue) at \(request.target.text) is not BMS data of an electric Hyundai or Kia"
    streaks.foreign += 1
    if streaks.foreign < Self.foreignLimit {
      if storedRequest == request { backOff(words, at: now, &effects) }
      return
    }
    streaks.foreign = 0
    if storedRequest == request {
      storedRequest = nil
      effects.append(.store(key: "request", []))
    }
    tryOther(words, isFinal: false, at: now, &effects)
  }
}

extension PageRequest {
  /// It asks for the battery page.
  var isPage: Bool { parameters.isEmpty && !isDiscovery }
}
