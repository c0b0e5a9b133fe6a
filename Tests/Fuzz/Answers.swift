// Hostile servers, sensors and disks for libFuzzer: answers of the weather's and the toy's servers, measurements of straps and foot
// pods, files that were kept, and the formulas and signal descriptions that people import. Whatever it is, nothing traps, every text is bounded and has nothing in it that a terminal obeys,
// every value is one of its property, and what was read is read the same once it was kept.
// Built together with Sources/Protocols as one module, outside of the package.

private func holdText(_ text: String, most: Int) {
  hold(text.unicodeScalars.count <= most, "\(text.unicodeScalars.count) scalars are too many")
  hold(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }, "a control character")
}

private func checkWeather(_ response: HTTPResponse) {
  do throws(WeatherError) {
    let report = try WeatherAnswer.weather(response)
    for property in WeatherProperty.inResponse {
      guard case .value(let value)? = report[property] else { continue }
      if let number = value.number { hold(property.range?.contains(number) == true, "\(property) cannot be \(number)") }
    }
    let kept = WeatherStore.answer(WeatherStore.bytes(of: report, at: WallTime(microseconds: 1), for: "here"), for: "here")
    hold(kept?.report.temperature == report.temperature || report.temperature.isAbsent, "another temperature was kept")
  } catch {
    holdText(error.message, most: 400)
  }
  do throws(WeatherError) {
    let found = try WeatherAnswer.place(response)
    hold((-90...90).contains(found.coordinates.latitude) && (-180...180).contains(found.coordinates.longitude), "nowhere on earth")
    holdText(found.name, most: 130)
  } catch {
    holdText(error.message, most: 400)
  }
}

extension Reading.Content {
  fileprivate var isAbsent: Bool { if case .absent = self { true } else { false } }
}

private func checkToy(_ response: HTTPResponse) {
  for isNew in [true, false] {
    do throws(ToyError) {
      let user = try ToyAnswer.user(response, isNew: isNew)
      hold(JSONNode(untrusted: user.bytes).flatMap(ToyUser.init) == user && user.id > 0, "another user was kept")
      holdText((user.name ?? "") + (user.email ?? ""), most: 200)
    } catch {
      holdText(error.message, most: 400)
    }
  }
  if var history = try? ToyAnswer.history(response, of: 18) {
    hold(Set(history.facts.map(\.id)).count == history.facts.count, "a fact is there twice")
    for fact in history.facts { holdText(fact.text, most: 1000) }
    history.time = 5
    hold(ToyHistory(stored: history.bytes) == history, "another history was kept")
  }
  do throws(ToyError) {
    if case .counted(let fact) = try ToyAnswer.voteResult(
      response, ToyPendingVote(server: "https://toy.example.org", user: 18, fact: 1, vote: .up))
    {
      holdText(fact.summary, most: 1000)
    }
  } catch {
    holdText(error.message, most: 400)
  }
}

private func checkSensor<Measurement: SensorMeasurement>(_ kind: Measurement.Type, _ bytes: [UInt8]) {
  var machine = SensorMachine<Measurement>()
  var effects = Effects()
  for input in [Input.linkChanged(.main, .up(maximumSend: nil)), .received(.main, bytes)] {
    machine.handle(input, at: 1, &effects)
    for reading in effects.readings { machine.check(reading, longest: 400) }
    effects.removeAll()
  }
  machine.checkWake(at: 1)
}

private func checkKept(_ bytes: [UInt8]) {
  var keeping = HealthStore()
  _ = keeping.restore(bytes, DayClock(WallTime(microseconds: 1_773_147_900_000_000), at: 5), at: 5)
  _ = WeatherStore.place(bytes, for: "Oslo")
  _ = WeatherStore.answer(bytes, for: "here")
  let options: [String: Value] = ["server": .string("https://x"), "listen": .string("0.0.0.0:1"), "toy-network": .string("1.2.3.4")]
  guard var machine = try? Kind.toy.make(Setup(options: options)) else { return hold(false, "these options are right") }
  var effects = Effects()
  let input = Input.started(restored: ["session": bytes, "history": bytes, "votes": bytes], wall: WallTime(microseconds: 0))
  machine.handle(input, at: 1, &effects)
  for reading in effects.readings { machine.check(reading, longest: 4000) }
  machine.checkWake(at: 1)
}

/// A formula, an end of line, and the data that it is asked about.
private func checkFormula(_ bytes: [UInt8]) {
  let end = bytes.firstIndex(of: lineFeed) ?? bytes.count
  let text = String(decoding: bytes[..<end], as: UTF8.self)
  do throws(ExpressionError) {
    let expression = try Expression(text)
    let outcome = bytes[end...].withUnsafeBufferPointer { expression.evaluate($0) }
    if case .number(let number) = outcome { hold(number.isFinite, "\(text) is \(number)") }
  } catch {
    hold((0...text.utf8.count).contains(error.offset), "a place outside of \(text)")
    holdText(error.message, most: 400)
  }
}

private func checkImport(_ bytes: [UInt8]) {
  guard let found = try? ImportedSignals(bytes) else { return }
  for line in found.file(from: "x").split(separator: "\n") { holdText(String(line), most: 2500) }
  for remark in found.skipped + found.notes { holdText(remark.place + remark.message, most: 3000) }
  hold(Set(found.signals.map(\.name)).count == found.count, "a name is there twice")
  for signal in found.signals {
    var problems: [OptionError] = []
    guard let read = CustomSignal(signal.section, of: Setup(), &problems) else { return hold(false, "\(signal.name): \(problems)") }
    hold(OBDQuery.readServices.contains(read.request.service), "\(signal.name) writes")
    let outcome = bytes.withUnsafeBufferPointer { read.row.read($0) }
    if case .value(let value) = outcome { hold((try? read.row.property.rule.accept(value)) == value, "\(signal.name): \(value.text)") }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = input.first else { return 0 }
  let body = Array(input.dropFirst())
  let status = [200, 200, 200, 201, 204, 400, 404, 500][Int(first & 7)]
  let response = HTTPResponse.answered(status: status, type: first & 8 == 0 ? "application/json" : nil, body: body)
  switch first >> 4 {
  case 0...2: checkWeather(response)
  case 3: checkFormula(body)
  case 4: checkImport(body)
  case 5...9: checkToy(response)
  case 10, 11: checkSensor(HeartRateMeasurement.self, body)
  case 12, 13: checkSensor(RunningMeasurement.self, body)
  default: checkKept(body)
  }
  return 0
}
