// doctor: whether what the devices need is there, and how to mend what is not. Exit 1 when something has failed.

import ArgumentParser
import Protocols

struct DoctorCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Look for what is wrong with Bluetooth and the links, and name the mend.",
    discussion: "Changes nothing. Exit status 1 when something that a device needs has failed.")

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws {
    let findings = try common.connect(output).call(Contract.Diagnose.self, NoParameters()).findings
    if output.json {
      output.json(["findings": .array(findings.map { JSON($0) })])
    } else {
      output.lines(findings.map { Self.line($0, paint: output.paint) })
    }
    if findings.contains(where: { $0.state == "failed" }) { throw ExitCode.failure }
  }

  static func line(_ finding: Contract.Finding, paint: (String, Style) -> String) -> String {
    let style: Style = finding.state == "ok" ? .good : finding.state == "failed" ? .bad : .bold
    let state = paint(Output.oneLine(finding.state), style) + String(repeating: " ", count: max(0, 7 - finding.state.count))
    return state + Output.oneLine("  \(finding.subject): \(finding.text)\(finding.mend.map { "; \($0)" } ?? "")")
  }
}
