"""MLflow: one `make_judge` for each criterion with an integer as its value, run by `mlflow.genai.evaluate`.

Telemetry is off by MLFLOW_DISABLE_TELEMETRY. Results are tracked in an SQLite file. A second start begins again.
"""

from __future__ import annotations

import os

import cases

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
# Each text asks for all of its criteria at once.
os.environ["MLFLOW_GENAI_EVAL_MAX_WORKERS"] = str(
    cases.CONCURRENCY // len(cases.CRITERIA)
)
# Without a limit of its own, as the other tools have none.
os.environ["MLFLOW_GENAI_EVAL_PREDICT_RATE_LIMIT"] = "0"
os.environ["MLFLOW_GENAI_EVAL_SCORER_RATE_LIMIT"] = "0"

import mlflow
from mlflow.genai.judges import make_judge


def main() -> None:
    url, path, folder = cases.arguments()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment(
        experiment_id=mlflow.create_experiment(
            f"replies-{os.getpid()}", artifact_location=str(folder / "artifacts")
        )
    )
    judges = [
        make_judge(
            name=name,
            instructions=f"Question: {{{{ inputs }}}}\nReply: {{{{ outputs }}}}\n{question} {cases.SCALE}",
            model=f"openai:/{cases.MODEL}",
            base_url=url,
            feedback_value_type=int,
            inference_params={"temperature": 0},
        )
        for name, question in cases.CRITERIA.items()
    ]
    texts = cases.texts()
    data = [
        {
            "inputs": {"number": text.number, "question": text.source},
            "outputs": text.output,
        }
        for text in texts
    ]
    mlflow.genai.evaluate(data=data, scorers=judges)
    traces = mlflow.search_traces(max_results=len(texts) + 1, return_type="list")
    judged = []
    for trace in traces:
        number = trace.info.request_preview.split('"number": ')[1].split(",")[0]
        for assessment in trace.info.assessments:
            feedback = assessment.feedback
            error = feedback.error.error_message if feedback.error else ""
            value = None if feedback.value is None else float(feedback.value)
            judged.append(
                cases.Judged(int(number), assessment.name, value, error or "")
            )
    cases.write(path, judged)


if __name__ == "__main__":
    main()
